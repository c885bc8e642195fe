import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { type AnswerBytes, bytesFromAnswer } from "./answer-bytes.js";
import { bodyFaultOf, isSound, MAX_RESPONSE_BYTES, rowFaultOf } from "./answer-expectations.js";
import { type AnswerInput, generatedAnswers } from "./answer-inputs.js";
import { type Bench, startBench, type Worker } from "./bench.js";
import { type Campaign, mustHold } from "./campaign.js";
import { ENDLESS_ANSWERS, type EndlessAnswer } from "./endless-answers.js";
import { explore, exploreList, joined } from "./explore.js";
import { rowFrom, type SurfaceAnswer, type SurfaceName } from "./surfaces.js";
import { undoJson, undoPercent, viewsOf } from "./token-spellings.js";
import type { Play } from "./wire-provider.js";

const WORKERS = 12;
const DEADLINE_MS = 1_500;
/** All that the JSON route says outside of the envelope. */
const OUTER_FIELDS =
  /^(?:content-type|content-length|cache-control|x-content-type-options|x-request-id|date|connection|keep-alive)$/;

/** Answers of a hostile or broken provider: each ends as one row in time, without the token, and bends no other call. */
export const fuzzAnswers: Campaign = async ({ count, seed }) => {
  const env = { RELAY_MAX_RESPONSE_BYTES: String(MAX_RESPONSE_BYTES) };
  const bench = await startBench({ workers: WORKERS, deadlineMs: DEADLINE_MS, env });
  const url = `http://127.0.0.1:${bench.provider.port}/x`;
  const workerOf = (at: number) => bench.workers[at] as Worker;
  const check = (input: AnswerInput, worker: number) => checkAnswer(bench, url, input, workerOf(worker));
  const checkEndless = (input: EndlessAnswer, worker: number) =>
    checkEndlessAnswer(bench, url, input, workerOf(worker));
  return bench.finish(
    joined(
      await exploreList(ENDLESS_ANSWERS, checkEndless, WORKERS),
      await explore(generatedAnswers, check, { count, seed, workers: WORKERS }),
    ),
  );
};

async function checkAnswer(bench: Bench, url: string, given: AnswerInput, worker: Worker): Promise<void> {
  const input = { ...given, call: callOf(given) };
  const { surface, method, isBodyMode } = input.call;
  const bytes = bytesFromAnswer(input, worker.token);
  bench.provider.take(worker.token);
  bench.provider.play(worker.token, playOf(input, bytes));
  const call = JSON.stringify({ url, method });
  const mode = isBodyMode ? ({ responseMode: "RESPONSE_MODE_BODY" } as const) : {};
  // An answer that is broken may hold half a token, which only a provider could know for one.
  const findLeak = isSound(input) ? bench.canaries.findPart : bench.canaries.findWhole;
  const answer = await bench.send(surface, { providerName: "wire", userId: worker.userId, call, ...mode }, findLeak);
  const row = rowFrom(surface, answer);
  mustHold(
    !isSound(input) || !holdsSpelled(answer.text, worker.token),
    `${surface} answered with a token to be undone`,
  );
  const fault = rowFaultOf(input, row) ?? bodyFaultOf(input, bytes, row, answer.text);
  mustHold(fault === undefined, `${surface}: ${fault}`);
  mustHold(!isSound(input) || !answer.text.includes("STRAY"), `${surface} answered with stray bytes`);
  mustHaveNoForeignFields(surface, answer);
  await checkNormal(bench, url, worker);
}

/** What is passed through comes as exact bytes; for an answer that never ends it waits longer than there is time for here. */
function callOf({ call, end }: AnswerInput): AnswerInput["call"] {
  if (call.surface !== "via") return call;
  if (end === "hold") return { ...call, surface: "REST" };
  return { surface: "via", method: call.method === "GETFILE" ? "GET" : call.method, isBodyMode: true };
}

/** Whether a reader who undoes JSON and forms, in turn, comes to the token. */
function holdsSpelled(text: string, token: string): boolean {
  const orders = [
    [undoJson, undoJson, undoPercent, undoPercent],
    [undoJson, undoPercent, undoJson, undoPercent],
    [undoJson, undoPercent, undoPercent, undoJson],
  ];
  return orders.some((steps) => viewsOf(text, steps).some((view) => view.includes(token)));
}

async function checkEndlessAnswer(bench: Bench, url: string, { play, errorType }: EndlessAnswer, worker: Worker) {
  for (const surface of ["REST", "Connect"] as const) {
    bench.provider.take(worker.token);
    bench.provider.play(worker.token, play);
    const call = JSON.stringify({ url, method: "GET" });
    const row = rowFrom(surface, await bench.send(surface, { providerName: "wire", userId: worker.userId, call }));
    mustHold(row["errorType"] === errorType, `${surface} answered ${row["errorType"]} instead of ${errorType}`);
    await checkNormal(bench, url, worker);
  }
}

/** A call after a hostile one, perhaps on the same socket, gets its own answer. */
async function checkNormal(bench: Bench, url: string, worker: Worker): Promise<void> {
  const id = randomUUID();
  bench.provider.play(worker.token, playNormal(id));
  const call = JSON.stringify({ url, method: "GET" });
  const answer = await bench.send("REST", { providerName: "wire", userId: worker.userId, call });
  const row = rowFrom("REST", answer);
  mustHold(row["pincStatus"] === "success", `the next normal call failed: ${row["errorType"]}`);
  mustHold(JSON.stringify(row["data"]) === `{"id":"${id}"}`, "the next normal call got another call's answer");
  mustHold(bench.provider.take(worker.token).length <= 2, "a call was sent twice");
}

function playNormal(id: string): Play {
  const body = `{"id":"${id}"}`;
  const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  return (socket) => void socket.write(head + body);
}

/** Writes piece by piece, each in a turn of the event loop of its own, and then does to the socket what is asked. */
function playOf(input: AnswerInput, { writes }: AnswerBytes): Play {
  const end = input.end === "keep" && !isSound(input) ? "end" : input.end;
  return (socket) => writeNext(socket, writes.values(), end);
}

function writeNext(socket: Socket, rest: IterableIterator<Buffer>, end: AnswerInput["end"]): void {
  if (socket.destroyed) return;
  const next = rest.next();
  if (!next.done) socket.write(next.value, () => setImmediate(writeNext, socket, rest, end));
  else if (end === "end") socket.end();
  else if (end === "reset") socket.resetAndDestroy();
}

function mustHaveNoForeignFields(surface: SurfaceName, { headers }: SurfaceAnswer): void {
  mustHold(headers["set-cookie"] === undefined, `${surface} answered with a cookie`);
  if (surface !== "REST") return;
  const foreign = Object.keys(headers).find((name) => !OUTER_FIELDS.test(name));
  mustHold(foreign === undefined, `${surface} answered with the field ${foreign}`);
}

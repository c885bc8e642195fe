import { type Bench, startBench, type Worker } from "./bench.js";
import { generatedBodies, listBodies } from "./body-inputs.js";
import { type Campaign, mustHold } from "./campaign.js";
import { expectationOf, isTypedAlike, wireFaultOf } from "./case-expectations.js";
import { type CallInput, generatedCalls, listCalls, textFromCall } from "./case-inputs.js";
import { explore, exploreList, joined, pick } from "./explore.js";
import { type FuzzRow, isUndecodable, rowFrom, type SurfaceName } from "./surfaces.js";
import type { WireRequest } from "./wire-request.js";

const SURFACES = ["REST", "Connect"] as const;
const WORKERS = 8;
/** Of the generated inputs, this part is broken text instead of a call. */
const BODY_SHARE = 0.25;

/** What a call led to over one surface; `row` is undefined when the typed service could not decode it. */
interface Led {
  readonly row: FuzzRow | undefined;
  readonly requests: readonly WireRequest[];
}

/** Headers, methods, payloads, query strings and broken bodies: what reaches the provider is what the rules say. */
export const fuzzCases: Campaign = async ({ count, seed }) => {
  const bench = await startBench({ workers: WORKERS });
  const origin = `http://127.0.0.1:${bench.provider.port}`;
  const evil = `http://${bench.bystanders[0].authority}/`;
  const workerOf = (at: number) => bench.workers[at] as Worker;
  const checkCall = (input: CallInput, worker: number) => checkCase(bench, origin, input, workerOf(worker));
  const checkText = (body: Buffer, worker: number) => checkBody(bench, body, workerOf(worker));
  const bodies = Math.floor(count * BODY_SHARE);
  return bench.finish(
    joined(
      await exploreList(pick(listCalls(), count, seed), checkCall, WORKERS),
      await exploreList(listBodies(`${origin}/x`), checkText, WORKERS),
      await explore(generatedCalls, checkCall, { count: count - bodies, seed, workers: WORKERS }),
      await explore(generatedBodies(`${origin}/x`, evil), checkText, { count: bodies, seed, workers: WORKERS }),
    ),
  );
};

async function perform(bench: Bench, surface: SurfaceName, call: string | Buffer, worker: Worker): Promise<Led> {
  const answer = await bench.send(surface, { providerName: "wire", userId: worker.userId, call });
  const requests = bench.provider.take(worker.token);
  mustHold(requests.length <= 1, `${surface} sent ${requests.length} requests for one call`);
  if (surface === "Connect" && isUndecodable(answer)) {
    mustHold(requests.length === 0, "Connect sent a request for a message that it could not decode");
    return { row: undefined, requests };
  }
  return { row: rowFrom(surface, answer), requests };
}

async function checkCase(bench: Bench, origin: string, input: CallInput, worker: Worker): Promise<void> {
  const text = textFromCall(origin, input);
  const expectation = expectationOf(input);
  const isAlike = isTypedAlike(input);
  const led: Array<readonly string[]> = [];
  for (const surface of SURFACES) {
    const { row, requests } = await perform(bench, surface, text, worker);
    mustHold(row !== undefined || !isAlike, `${surface} could not decode a message of plain values`);
    if (surface === "REST" || isAlike) mustBeAsExpected(surface, expectation, row, requests);
    const [request] = requests;
    const fault = request === undefined || !(surface === "REST" || isAlike) ? undefined : wireFaultOf(input, request);
    mustHold(fault === undefined, `${surface} ${fault}`);
    led.push(comparable(row, request));
  }
  const difference = isAlike ? differenceOf(...led) : undefined;
  mustHold(difference === undefined, `REST and Connect differ: ${difference}`);
}

function mustBeAsExpected(
  surface: SurfaceName,
  expectation: ReturnType<typeof expectationOf>,
  row: FuzzRow | undefined,
  requests: readonly WireRequest[],
): void {
  const said = row?.["errorType"] ?? row?.["pincStatus"];
  const isPerformed = said === "success" && requests.length === 1;
  const isRefused = said === "CALL_FORMAT_ERROR" && requests.length === 0;
  mustHold(expectation !== "performed" || isPerformed, `${surface} did not perform a good call: ${said}`);
  mustHold(expectation !== "refused" || isRefused, `${surface} did not refuse a malformed call: ${said}`);
  mustHold(isPerformed || isRefused || said === "URL_NOT_ALLOWED", `${surface} answered ${said}`);
}

/** What must be the same over both surfaces; boundaries are random. */
function comparable(row: FuzzRow | undefined, request: WireRequest | undefined): readonly string[] {
  const { callId: _id, ...others } = row ?? {};
  const fields = request?.fields.map(([name, value]) => `${name}: ${value}`).sort();
  const parts = [
    ...Object.entries(others).sort(),
    request?.method,
    request?.target,
    fields,
    request?.body.toString("latin1"),
  ];
  return parts.map((part) => JSON.stringify(part ?? "").replace(/relay[0-9a-f]{36}/g, "BOUNDARY"));
}

function differenceOf(rest: readonly string[] = [], connect: readonly string[] = []): string | undefined {
  const at = rest.findIndex((part, index) => part !== connect[index]);
  return at === -1 ? undefined : `${rest[at]} and ${connect[at]}`;
}

async function checkBody(bench: Bench, body: Buffer, worker: Worker): Promise<void> {
  for (const surface of SURFACES) {
    const { row, requests } = await perform(bench, surface, body, worker);
    const said = row?.["errorType"] ?? row?.["pincStatus"] ?? "undecodable";
    mustHold(
      /^(?:success|CALL_FORMAT_ERROR|URL_NOT_ALLOWED|undecodable)$/.test(String(said)),
      `${surface} answered ${said}`,
    );
    mustHold(
      (said === "success") === (requests.length === 1),
      `${surface} answered ${said} and sent ${requests.length}`,
    );
  }
}

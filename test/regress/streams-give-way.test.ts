import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createAdminClients } from "../admin/admin-bed.js";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type SignedProvider, startSignedProvider } from "../support/oauth1-provider.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";
import { createStreamCallers, type StreamCaller } from "../support/stream-callers.js";

const STREAMS = 7;
const PROTOCOLS = createStreamCallers("http://x").map(([protocol], at) => [protocol, at] as const);

let provider: RawProvider;
let signed: SignedProvider;
let harness: Harness;
let greedy: TestApplication;
let other: TestApplication;
let held: Socket[] = [];
/** Lines of the log before the test. */
let known = 0;

/** Holds what comes to /held, and to /begun once its head and a byte are sent; all else gets 150 KB. */
beforeAll(async () => {
  provider = await startRawProvider((socket, { head }) => {
    if (!/^GET \/(?:held|begun)/.test(head)) return void socket.write(answer("a".repeat(150_000)));
    if (head.startsWith("GET /begun")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na");
    held.push(socket);
  });
  signed = await startSignedProvider();
  harness = await startHarness({
    env: { RELAY_MAX_BUFFERED_BYTES: String(1024 * 1024) },
    providers: [{ name: "raw", apiOrigins: [provider.origin] }, signed.definition("signed", {})],
  });
  [greedy, other] = [await harness.createApplication(), await harness.createApplication()];
  for (const application of [greedy, other]) await harness.connect(application, "u", { providerName: "raw" });
  await harness.putClient(greedy, "signed", signed.consumer);
  const account = { publicKey: greedy.publicKey, userId: "u", providerName: "signed" };
  await createAdminClients(harness).connections.putConnection({ ...account, secrets: signed.issueToken() });
});

beforeEach(() => {
  held = [];
  known = harness.logLines.length;
});

afterAll(async () => {
  await harness.close();
  await provider.close();
  await signed.close();
});

const callOf = ({ publicKey }: TestApplication, path: string) => ({
  ...{ providerName: "raw", userId: "u", publicKey },
  call: { url: provider.origin + path, method: "GET" },
});

/** How the streams of one application end when a call of another one needs what they hold. */
async function endsOf(caller: StreamCaller, path: string): Promise<string[]> {
  const seen = provider.requests.length;
  const streams = Array.from({ length: STREAMS }, async () => {
    const { row, body } = await caller(callOf(greedy, path));
    return row === undefined ? body.toString() : `${row["errorType"]} ${row["statusCode"]}`;
  });
  const ends = Promise.all(streams.map((stream) => stream.catch(() => "cut")));
  await provider.seen(seen + STREAMS);
  expect((await postRest(harness.url, callOf(other, "/large"))).text).toContain('"pincStatus":"success"');
  for (const socket of held) socket.write(path === "/begun" ? "b" : answer("ab"));
  return ends;
}

/** Error types of the streams in the log. */
function logged(): string[] {
  const lines = harness.logLines
    .slice(known)
    .map((line) => JSON.parse(line))
    .filter((line) => line.applicationId === greedy.id);
  return lines.map((line) => line.errorType ?? "");
}

describe("a stream that has to give way", () => {
  it.each(PROTOCOLS)("gets a row before its head, and is recorded so: %s", async (_protocol, at) => {
    const [, caller] = createStreamCallers(harness.url)[at] as readonly [string, StreamCaller];
    const ends = await endsOf(caller, "/held");
    expect(new Set(ends)).toEqual(new Set(["OVERLOADED 503", "ab"]));
    await expect.poll(() => logged().length).toBe(STREAMS);
    const evicted = ends.filter((end) => end !== "ab").map(() => "OVERLOADED");
    expect(logged().sort()).toEqual([...ends.filter((end) => end === "ab").map(() => ""), ...evicted]);
  });

  it.each(PROTOCOLS)("is cut behind its head, and is recorded so: %s", async (_protocol, at) => {
    const [, caller] = createStreamCallers(harness.url)[at] as readonly [string, StreamCaller];
    const ends = await endsOf(caller, "/begun");
    expect(new Set(ends)).toEqual(new Set(["cut", "ab"]));
    await expect.poll(() => logged().length).toBe(STREAMS);
    expect(logged().filter((type) => type === "OVERLOADED")).toHaveLength(ends.filter((end) => end === "cut").length);
  });
});

describe("a form that is read to be signed, and has to give way", () => {
  /** Resolves once the relay reads the form, which has no end yet. */
  async function beginForm(): Promise<ClientRequest> {
    const headers = {
      "x-relay-public-key": greedy.publicKey,
      "x-relay-user-id": "u",
      "content-type": "application/x-www-form-urlencoded",
      expect: "100-continue",
    };
    const form = request(`${harness.url}/via/signed/${new URL(signed.origin).host}/v1`, { method: "POST", headers });
    form.flushHeaders();
    await once(form, "continue");
    form.write("a=");
    return form;
  }

  it("gets its row at once", async () => {
    const forms = await Promise.all([beginForm(), beginForm(), beginForm()]);
    const answers = forms.map(async (form) => ((await once(form, "response")) as [IncomingMessage])[0].resume());
    expect((await postRest(harness.url, callOf(other, "/large"))).text).toContain('"pincStatus":"success"');
    expect((await Promise.race(answers)).statusCode).toBe(503);
    for (const form of forms) form.end("1");
    const statusCodes = (await Promise.all(answers)).map(({ statusCode }) => statusCode);
    expect(new Set(statusCodes)).toEqual(new Set([200, 503]));
  });
});

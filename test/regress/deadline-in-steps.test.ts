import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";

const DEADLINE_MS = 5000;
/** A hundred slices: about four looks at the clock for each, whatever is done with it. */
const LARGE = 100 * 64 * 1024;

let harness: Harness;
let provider: RawProvider;
let application: TestApplication;
/** Called when the provider is about to answer. */
let onRequest = () => {};
let contentType: string;

beforeAll(async () => {
  provider = await startRawProvider((socket) => {
    socket.write(answer(Buffer.alloc(LARGE, "é☕"), `Content-Type: ${contentType}`), onRequest);
  });
  harness = await startHarness({
    env: { RELAY_DEADLINE_MS: String(DEADLINE_MS) },
    providers: [{ name: "raw", apiOrigins: [provider.origin] }],
  });
  application = await harness.createApplication();
  await harness.connect(application, "u", { providerName: "raw" });
});

afterEach(() => {
  vi.restoreAllMocks();
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

/** From now on so many looks at the clock make up the time of a whole call. */
function looksUntilDeadline(looks: number): void {
  const { now } = performance;
  let ahead = 0;
  vi.spyOn(performance, "now").mockImplementation(() => {
    ahead += DEADLINE_MS / looks;
    return now.call(performance) + ahead;
  });
}

const PROTOCOLS = ["REST", "Connect JSON", "Connect binary", "gRPC", "gRPC-Web"] as const;

async function call(protocol: string, description: object) {
  const [, caller] = createCallers(harness.url).find(([name]) => name === protocol) ?? [];
  if (caller === undefined) throw new Error("no such protocol");
  const row = await caller({
    ...{ providerName: "raw", userId: "u", publicKey: application.publicKey },
    call: { url: `${provider.origin}/x`, method: "GET", ...description },
  });
  // Looking at it costs a test less than comparing ten megabytes.
  return { ...row, data: typeof row["data"] };
}

function lastLine() {
  return JSON.parse(harness.logLines.findLast((line) => line.includes('"msg":"call"')) ?? "{}");
}

const TIMEOUT = { errorType: "PROVIDER_TIMEOUT", statusCode: 504, inernalError: expect.stringContaining("deadline") };

describe("the deadline of a call", () => {
  it.each([
    ["REST", "POST"],
    ["Connect JSON", "POST"],
    ["Connect binary", "FORM"],
    ["gRPC", "FORM"],
  ])("ends %s while a large %s is read or written anew, and nothing is sent", async (protocol, method) => {
    const before = provider.requests.length;
    const isExact = protocol === "Connect JSON";
    const body = isExact
      ? { body: Buffer.alloc(LARGE / 8).toString("base64") }
      : { payload: { a: "é ".repeat(LARGE / 8) } };
    looksUntilDeadline(40);
    expect(await call(protocol, { method, ...body })).toMatchObject(TIMEOUT);
    expect(provider.requests.length).toBe(before);
    expect(lastLine()).toMatchObject({ errorType: "PROVIDER_TIMEOUT" });
  });

  it.each(PROTOCOLS)("ends %s while a large answer is judged", async (protocol) => {
    contentType = "application/json";
    onRequest = () => looksUntilDeadline(150);
    expect(await call(protocol, {})).toMatchObject(TIMEOUT);
    expect(lastLine()).toMatchObject({ errorType: "PROVIDER_TIMEOUT" });
  });

  it.each(["REST", "Connect JSON", "gRPC"])("ends %s while a large answer is written anew", async (protocol) => {
    contentType = "image/png";
    // Judging it is done by then.
    onRequest = () => looksUntilDeadline(620);
    expect(await call(protocol, {})).toMatchObject(TIMEOUT);
    expect(lastLine()).toMatchObject({ errorType: "PROVIDER_TIMEOUT" });
  });

  it.each(PROTOCOLS)("is far from over for %s where the clock goes on as ever", async (protocol) => {
    contentType = "image/png";
    onRequest = () => {};
    expect(await call(protocol, {})).toMatchObject({ pincStatus: "success", data: "string" });
    expect(lastLine()).toMatchObject({ status: 200 });
  });
});

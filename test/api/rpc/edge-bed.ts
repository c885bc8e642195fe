import { Agent, type Dispatcher } from "undici";
import { expect } from "vitest";
import type { ScenarioCall } from "../../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../../support/harness.js";

/** Where RelayService is called. */
export const PATH = "/relay.v1.RelayService/Call";
/** Largest message that the relay of these tests takes. */
export const MAX_REQUEST_BYTES = 1_000_000;

/** What a test of HTTP looks at. */
interface Answer {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData["headers"];
  readonly text: string;
}

/** A relay with a connected user `ada`, and a client that sends it bytes over one kept-alive connection. */
export interface EdgeBed {
  readonly harness: Harness;
  readonly application: TestApplication;
  send(
    body: Dispatcher.DispatchOptions["body"],
    headers?: Record<string, string>,
    options?: { method?: Dispatcher.HttpMethod; path?: string },
  ): Promise<Answer>;
  /** A call of ada's at a path of the sandbox. */
  call(path: string, description?: object): ScenarioCall;
  /** Holds after every edge: the connection, and the relay, are as good as before. */
  expectGoodCall(): Promise<void>;
  close(): Promise<void>;
}

/** Starts it on free ports. */
export async function startEdgeBed(): Promise<EdgeBed> {
  const harness = await startHarness({ env: { RELAY_MAX_REQUEST_BYTES: String(MAX_REQUEST_BYTES) } });
  const application = await harness.createApplication();
  await harness.connect(application, "ada");
  // One connection: an answer that leaves it unusable makes the next call hang.
  const agent = new Agent({ connections: 1, pipelining: 1 });
  const send: EdgeBed["send"] = async (body, headers = {}, { method = "POST", path = PATH } = {}) => {
    const fields = { "content-type": "application/json", ...headers };
    const answer = await agent.request({ origin: harness.url, path, method, headers: fields, body: body ?? null });
    return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
  };
  const call: EdgeBed["call"] = (path, description = {}) => ({
    providerName: "sandbox",
    userId: "ada",
    publicKey: application.publicKey,
    call: { url: harness.sandbox.origin + path, method: "GET", ...description },
  });
  return {
    harness,
    application,
    send,
    call,
    async expectGoodCall() {
      const { status, text } = await send(JSON.stringify(call("/me")));
      expect(status).toBe(200);
      expect(JSON.parse(text)).toMatchObject({ rows: [{ pincStatus: "success", data: { login: "ada" } }] });
    },
    async close() {
      await agent.close();
      await harness.close();
    },
  };
}

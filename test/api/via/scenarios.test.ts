import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ScenarioCall } from "../../support/callers.js";
import { rowFromStream } from "../../support/row-from-stream.js";
import { callOf, SCENARIOS, type Scenario, startWorld, type World } from "../../support/scenarios.js";
import type { Streamed } from "../../support/stream-callers.js";
import { readAnswer } from "./via-bed.js";

let world: World;

beforeAll(async () => {
  world = await startWorld();
});

afterAll(() => world.harness.close());

/** What only a described call has, and what a parser of HTTP refuses before the relay sees it. */
const NOT_PASSED = new Set([
  "no url",
  "no method",
  "no absolute url",
  "a header that would end the line",
  // Refused, since it would go out as something else.
  "a path that leads out of the rules of a call token",
  // Both are refused as a request that names no caller.
  "no user",
  "no public key",
]);

/** Scenarios whose call is a request: method, url, headers and bytes. */
const PASSED = SCENARIOS.filter(({ name, call = {}, outer, notStreamed }) => {
  const { payload, queryString, method = "GET", explodeArrays } = call;
  if (NOT_PASSED.has(name) || notStreamed !== undefined || outer?.responseMode !== undefined) return false;
  const isPlain = payload === undefined && queryString === undefined && explodeArrays === undefined;
  return isPlain && /^(?!FORM|GETFILE)[A-Z]+$/.test(String(method)) && method !== "TRACE";
});

/** The same call in the provider's own form. */
function requestOf(call: ScenarioCall) {
  const { url, method, headers, body } = call.call as Record<string, string> & { headers?: Record<string, string> };
  const [, host = "", path = ""] = /^https?:\/\/([^/]*)(.*)$/.exec(url ?? "") ?? [];
  const fields: Record<string, string> = { ...headers, ...call.outerHeaders };
  if (call.publicKey !== "") fields["x-relay-public-key"] = call.publicKey;
  if (call.userId !== "") fields["x-relay-user-id"] = call.userId;
  if (call.privateKey !== undefined) fields["x-relay-private-key"] = call.privateKey;
  if (call.userSignature !== undefined) fields["x-relay-user-signature"] = call.userSignature;
  const content = body === undefined ? undefined : Buffer.from(body, "base64");
  if (content !== undefined) fields["content-length"] = String(content.length);
  return { path: `/via/${call.providerName}/${host}${path}`, method: method ?? "", fields, content };
}

const CALLERS: ReadonlyArray<readonly [protocol: string, caller: (call: ScenarioCall) => Promise<Streamed>]> = [
  [
    "HTTP/1.1",
    async (call) => {
      const { path, method, fields, content } = requestOf(call);
      const { hostname, port } = new URL(world.harness.url);
      const sent = request({ hostname, port, path, method, headers: fields });
      sent.end(content);
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      const { status, fields: received, body } = await readAnswer(response);
      return answerFrom(status, received as Record<string, string>, body);
    },
  ],
  [
    "HTTP/2",
    async (call) => {
      const { path, method, fields, content } = requestOf(call);
      const session = connectHttp2(world.harness.url);
      try {
        const stream = session.request({ ":method": method, ":path": path, ...fields }, { endStream: !content });
        if (content) stream.end(content);
        const received = await new Promise<Record<string, string>>((resolve, reject) => {
          stream.once("error", reject).once("response", (head) => resolve(head as never));
        });
        const chunks: Buffer[] = [];
        for await (const chunk of stream) chunks.push(chunk as Buffer);
        const { ":status": status, ...headers } = received;
        return answerFrom(Number(status), headers, Buffer.concat(chunks));
      } finally {
        session.close();
      }
    },
  ],
];

function answerFrom(statusCode: number, headers: Readonly<Record<string, string>>, body: Buffer): Streamed {
  if (headers["x-relay-error"] === undefined) return { head: { statusCode, headers }, body, row: undefined };
  const [row] = (JSON.parse(body.toString()) as { rows: Array<Record<string, unknown>> }).rows;
  expect(row).toMatchObject({ statusCode, errorType: headers["x-relay-error"] });
  return { head: undefined, body: Buffer.alloc(0), row };
}

describe.each(PASSED)("$name", (scenario: Scenario) => {
  it.each(CALLERS)("is passed through over %s", async (_protocol, caller) => {
    const { head, body, row } = await caller(callOf(world, scenario));
    const { pincStatus: _status, errorType, inernalError: _error, ...answer } = scenario.row;
    if (errorType === undefined || errorType === "API_ERROR") {
      expect(row).toBeUndefined();
      expect(rowFromStream({ head, body, row }, scenario.row)).toMatchObject(answer);
    } else {
      expect(row).toMatchObject(scenario.row);
    }
    expect(body.toString("latin1") + JSON.stringify(head)).not.toContain(world.token);
  });
});

describe("the scenarios", () => {
  it("are most of those that are streamed", () => {
    expect(PASSED.length).toBeGreaterThan(50);
  });
});

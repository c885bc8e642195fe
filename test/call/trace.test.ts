import { describe, expect, it } from "vitest";
import type { Call } from "../../src/call/call.js";
import { createRelayLog } from "../../src/call/trace.js";
import type { CallRecord } from "../../src/telemetry/call-log.js";

/** Everything a caller chose, or could be a secret, is this text. */
const SECRET = "CANARY_ANYTHING";

const call = {
  callId: "id",
  requestId: "id",
  traceContext: { traceId: "0af7651916cd43dd8448eb211c80319c", parentId: SECRET, flags: 1, state: SECRET },
  surface: "rest",
  startedAt: 0,
  providerName: SECRET,
  publicKey: SECRET,
  userId: SECRET,
  proof: {
    privateKeys: [{ place: SECRET, publicKey: SECRET, privateKey: SECRET }],
    userSignature: SECRET,
    origin: SECRET,
    address: SECRET,
  },
  description: { url: SECRET, headers: [[SECRET, SECRET]] },
} as unknown as Call;

describe("createRelayLog()", () => {
  it("logs an allow-list of members, none of which a caller or a provider chose", () => {
    const records: CallRecord[] = [];
    const log = createRelayLog({
      sinks: [(record) => records.push(record)],
      fault: () => {},
      startSpans: undefined,
    });
    const answer = { statusCode: 200, contentType: SECRET, headers: [], data: { kind: "text", text: SECRET } } as const;
    log.call(log.begin(call, "Call"), { result: "success", callId: "id", answer });
    log.call(log.begin(call, "Call"), {
      result: "error",
      callId: "id",
      errorType: "API_ERROR",
      statusCode: 400,
      message: SECRET,
      answer,
    });
    expect(JSON.stringify(records)).not.toContain(SECRET);
    for (const record of records) {
      expect(Object.keys(record).sort()).toEqual([
        "applicationId",
        "callId",
        "cause",
        "errorType",
        "headMs",
        "method",
        "origin",
        "provider",
        "providerMs",
        "requestBytes",
        "requestId",
        "responseBytes",
        "rule",
        "status",
        "surface",
        "tokenMs",
        "totalMs",
        "traceId",
      ]);
    }
  });
});

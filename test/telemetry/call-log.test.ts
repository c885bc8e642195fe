import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { type CallRecord, createCallLog } from "../../src/telemetry/call-log.js";

const FULL: CallRecord = {
  callId: "3f0c9a1e-5b7d-4c52-9d2b-6a1f0e8c7b45",
  requestId: 'mine-"1"\\',
  traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
  surface: "grpc-web",
  applicationId: "5d1b8f6e-2f5e-4a0a-8f43-1f3f7f1c9a10",
  provider: "example",
  method: "PATCH",
  origin: "https://api.example.com:8443",
  status: 502,
  errorType: "PROVIDER_UNREACHABLE",
  rule: "https://{subdomain}.example.com",
  cause: 'ECONNREFUSED "quoted" \\ \u0001 é',
  totalMs: 12.3,
  headMs: 9.1,
  tokenMs: 1.5,
  providerMs: 7,
  requestBytes: 1024,
  responseBytes: 10_485_760,
};

const EMPTY: CallRecord = {
  ...FULL,
  requestId: undefined,
  traceId: undefined,
  headMs: undefined,
  tokenMs: undefined,
  applicationId: undefined,
  provider: undefined,
  method: undefined,
  origin: undefined,
  errorType: undefined,
  rule: undefined,
  cause: undefined,
  providerMs: undefined,
};

function linesOf(level: string, bindings: object, record: CallRecord): { ours: string[]; pinos: string[] } {
  const lines: string[] = [];
  const options = { level, base: null, timestamp: () => ',"time":"2030-01-02T03:04:05.678Z"' };
  const logger = pino(options, { write: (line: string) => void lines.push(line) }).child(bindings);
  createCallLog(logger)(record);
  const ours = lines.splice(0);
  logger.info(record, "call");
  return { ours, pinos: lines };
}

describe("createCallLog()", () => {
  it.each([
    ["every member", FULL],
    ["no more than there must be", EMPTY],
  ])("writes the line that the logger itself would write, of %s", (_, record) => {
    for (const bindings of [{}, { worker: 3 }]) {
      const { ours, pinos } = linesOf("info", bindings, record);
      expect(ours).toEqual(pinos);
      expect(ours).toHaveLength(1);
    }
  });

  it("writes nothing when the level is off", () => {
    expect(linesOf("warn", {}, FULL).ours).toEqual([]);
  });

  it.each([
    [0, 0],
    [0.04, 0],
    [0.05, 0.1],
    [9.96, 10],
    [12.34, 12.3],
    [99_999.99, 100_000],
  ])("rounds %s ms to %s", (ms, rounded) => {
    const { ours } = linesOf("info", {}, { ...FULL, totalMs: ms, providerMs: ms });
    expect(JSON.parse(ours[0] ?? "")).toMatchObject({ totalMs: rounded, providerMs: rounded });
  });
});

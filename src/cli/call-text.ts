import type { StoredCall } from "../records/stored-call.js";
import { textFields, textTable } from "./text-table.js";

/** A recorded call for programs. */
export function jsonFromCall(call: StoredCall) {
  return {
    callId: call.callId,
    time: new Date(call.startedAt).toISOString(),
    surface: call.surface,
    provider: call.provider ?? null,
    method: call.method ?? null,
    origin: call.origin ?? null,
    path: call.path ?? null,
    queryKeys: call.queryKeys,
    status: call.status,
    errorType: call.errorType ?? null,
    rule: call.rule ?? null,
    cause: call.cause ?? null,
    totalMs: call.totalMs,
    queueMs: call.queueMs ?? null,
    tokenMs: call.tokenMs ?? null,
    providerMs: call.providerMs ?? null,
    requestBytes: call.requestBytes,
    responseBytes: call.responseBytes,
    captured: call.isCaptured,
  };
}

/** Recorded calls for a person, a line each. */
export function tableFromCalls(calls: readonly StoredCall[]): string {
  const rows = calls.map((call) => [
    new Date(call.startedAt).toISOString(),
    call.provider ?? "-",
    call.method ?? "-",
    placeOf(call),
    String(call.status),
    call.errorType ?? "-",
    String(call.totalMs),
    String(call.providerMs ?? "-"),
    call.callId,
  ]);
  return textTable(["TIME", "PROVIDER", "METHOD", "URL", "STATUS", "ERROR", "MS", "PROVIDER MS", "CALL ID"], rows);
}

/** One recorded call for a person. */
export function textFromCall(call: StoredCall): string {
  const ms = (value: number | undefined) => (value === undefined ? "-" : `${value} ms`);
  return textFields([
    ["call id", call.callId],
    ["time", new Date(call.startedAt).toISOString()],
    ["surface", call.surface],
    ["provider", call.provider ?? "-"],
    ["request", `${call.method ?? "-"} ${placeOf(call)}`],
    ["query keys", call.queryKeys.join(", ") || "none"],
    ["status", call.errorType === undefined ? String(call.status) : `${call.status} ${call.errorType}`],
    ["rule", call.rule ?? "-"],
    ["cause", call.cause ?? "-"],
    ["total", ms(call.totalMs)],
    ["  token", ms(call.tokenMs)],
    ["  queue", ms(call.queueMs)],
    ["  provider", ms(call.providerMs)],
    ["bytes sent", String(call.requestBytes)],
    ["bytes received", String(call.responseBytes)],
  ]);
}

/** What was refused is not told. */
function placeOf({ origin, path }: StoredCall): string {
  return origin === undefined ? "-" : `${origin}${path ?? ""}`;
}

import type { CallRecord } from "./call-log.js";

/**
 * The members of a call's log line as JSON, each with a comma before it. Pure.
 *
 * Written out, since every call has one: a loop over the members takes twice as long, pino's own way four times. The
 * texts are ids, names and words that nobody outside chose, so that nothing in them needs to be escaped; but for the
 * cause, which may be the class of any error, and the caller's own id of its request.
 */
export function callMembers(record: CallRecord): string {
  return (
    `,"callId":"${record.callId}"` +
    quoted("requestId", record.requestId) +
    member("traceId", record.traceId) +
    `,"surface":"${record.surface}"` +
    member("applicationId", record.applicationId) +
    member("provider", record.provider) +
    member("method", record.method) +
    member("origin", record.origin) +
    `,"status":${record.status}` +
    member("errorType", record.errorType) +
    member("rule", record.rule) +
    quoted("cause", record.cause) +
    `,"totalMs":${tenthsText(record.totalMs)}` +
    time("headMs", record.headMs) +
    // Nearly always there is no wait.
    (record.tokenMs === undefined || record.tokenMs < 0.05 ? "" : time("tokenMs", record.tokenMs)) +
    time("providerMs", record.providerMs) +
    `,"requestBytes":${record.requestBytes},"responseBytes":${record.responseBytes}`
  );
}

function member(name: string, value: string | undefined): string {
  return value === undefined ? "" : `,"${name}":"${value}"`;
}

/** Whatever text it is. */
function quoted(name: string, value: string | undefined): string {
  return value === undefined ? "" : `,"${name}":${JSON.stringify(value)}`;
}

function time(name: string, ms: number | undefined): string {
  return ms === undefined ? "" : `,"${name}":${tenthsText(ms)}`;
}

/** To a tenth. Two integers: finding the shortest text of a fraction takes longer than the rest of the line. */
function tenthsText(ms: number): string {
  const tenths = Math.round(ms * 10);
  const rest = tenths % 10;
  return rest === 0 ? `${tenths / 10}` : `${(tenths - rest) / 10}.${rest}`;
}

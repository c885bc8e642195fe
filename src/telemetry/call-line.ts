import type { CallRecord } from "./call-log.js";

/**
 * The members of a call's log line as JSON, each with a comma before it. Pure.
 *
 * Written out, since every call has one: a loop over the members takes twice as long, pino's own way four times. The
 * texts are ids, names and words that nobody outside chose, so that nothing in them needs to be escaped; but for the
 * cause, which may be the class of any error.
 */
export function callMembers(record: CallRecord): string {
  return (
    `,"callId":"${record.callId}","surface":"${record.surface}"` +
    member("applicationId", record.applicationId) +
    member("provider", record.provider) +
    member("method", record.method) +
    member("origin", record.origin) +
    `,"status":${record.status}` +
    member("errorType", record.errorType) +
    member("rule", record.rule) +
    (record.cause === undefined ? "" : `,"cause":${JSON.stringify(record.cause)}`) +
    `,"totalMs":${tenthsText(record.totalMs)}` +
    (record.providerMs === undefined ? "" : `,"providerMs":${tenthsText(record.providerMs)}`) +
    `,"requestBytes":${record.requestBytes},"responseBytes":${record.responseBytes}`
  );
}

function member(name: string, value: string | undefined): string {
  return value === undefined ? "" : `,"${name}":"${value}"`;
}

/** To a tenth. Two integers: finding the shortest text of a fraction takes longer than the rest of the line. */
function tenthsText(ms: number): string {
  const tenths = Math.round(ms * 10);
  const rest = tenths % 10;
  return rest === 0 ? `${tenths / 10}` : `${(tenths - rest) / 10}.${rest}`;
}

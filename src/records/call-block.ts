import type { StoredCall } from "./stored-call.js";

/** Some calls of one application, in the order in which they ended: they are kept, read and deleted together. */
export interface CallBlock {
  readonly applicationId: string;
  readonly count: number;
  /** When the first and the last of them began, in milliseconds since the epoch. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** All of them, as text. */
  readonly calls: string;
}

/** Members in the order in which they are written; the application stands beside the block. */
const MEMBERS = [
  "callId",
  "startedAt",
  "surface",
  "provider",
  "method",
  "origin",
  "path",
  "queryKeys",
  "status",
  "errorType",
  "rule",
  "cause",
  "totalMs",
  "tokenMs",
  "queueMs",
  "providerMs",
  "requestBytes",
  "responseBytes",
  "isCaptured",
] as const satisfies ReadonlyArray<keyof StoredCall>;

/**
 * Puts calls of one application together. Pure.
 *
 * JSON, with the names of the members once before all calls: less than half of the size that an object for each would
 * take, and a reader of another version still knows which member is which.
 */
export function createCallBlock(applicationId: string, calls: readonly StoredCall[]): CallBlock {
  let firstAt = Number.POSITIVE_INFINITY;
  let lastAt = 0;
  for (const { startedAt } of calls) {
    firstAt = Math.min(firstAt, startedAt);
    lastAt = Math.max(lastAt, startedAt);
  }
  const text = JSON.stringify([MEMBERS, ...calls.map(rowFrom)]);
  return { applicationId, count: calls.length, firstAt, lastAt, calls: text };
}

/** The calls of a block. Pure. Throws for a text that is none. */
export function callsFromBlock({ applicationId, calls }: Pick<CallBlock, "applicationId" | "calls">): StoredCall[] {
  const [members, ...rows] = JSON.parse(calls) as [readonly string[], ...Array<readonly unknown[]>];
  const at = MEMBERS.map((member) => members.indexOf(member));
  return rows.map((row) => callFrom(applicationId, row, at));
}

/** Absent members are null in JSON. */
function rowFrom(call: StoredCall): unknown[] {
  return [
    call.callId,
    call.startedAt,
    call.surface,
    call.provider,
    call.method,
    call.origin,
    call.path,
    call.queryKeys.length === 0 ? 0 : call.queryKeys,
    call.status,
    call.errorType,
    call.rule,
    call.cause,
    tenths(call.totalMs),
    tenths(call.tokenMs),
    tenths(call.queueMs),
    tenths(call.providerMs),
    call.requestBytes,
    call.responseBytes,
    call.isCaptured ? 1 : 0,
  ];
}

/** @param at where a row has each of `MEMBERS`; -1 for one that its writer did not know. */
function callFrom(applicationId: string, row: readonly unknown[], at: readonly number[]): StoredCall {
  const call: Record<string, unknown> = { applicationId };
  for (const [index, member] of MEMBERS.entries()) call[member] = row[at[index] as number] ?? undefined;
  call["queryKeys"] ||= [];
  call["isCaptured"] = Boolean(call["isCaptured"]);
  return call as unknown as StoredCall;
}

function tenths(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 10) / 10;
}

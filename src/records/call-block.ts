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

const HEAD = JSON.stringify(MEMBERS);

/** A call as it waits to be written: one short text instead of twenty values, which the collector would have to move. */
export interface CallRow {
  readonly applicationId: string;
  readonly startedAt: number;
  readonly text: string;
}

/** The row of a call. Pure. */
export function rowFromCall(call: StoredCall): CallRow {
  return { applicationId: call.applicationId, startedAt: call.startedAt, text: JSON.stringify(valuesOf(call)) };
}

/**
 * Puts calls of one application together. Pure.
 *
 * JSON, with the names of the members once before all calls: less than half of the size that an object for each would
 * take, and a reader of another version still knows which member is which.
 */
export function createCallBlock(applicationId: string, rows: readonly CallRow[]): CallBlock {
  let firstAt = Number.POSITIVE_INFINITY;
  let lastAt = 0;
  let calls = `[${HEAD}`;
  for (const { startedAt, text } of rows) {
    firstAt = Math.min(firstAt, startedAt);
    lastAt = Math.max(lastAt, startedAt);
    calls += `,${text}`;
  }
  return { applicationId, count: rows.length, firstAt, lastAt, calls: `${calls}]` };
}

/** The calls of a block. Pure. Throws for a text that is none. */
export function callsFromBlock({ applicationId, calls }: Pick<CallBlock, "applicationId" | "calls">): StoredCall[] {
  const [members, ...rows] = JSON.parse(calls) as [readonly string[], ...Array<readonly unknown[]>];
  const at = MEMBERS.map((member) => members.indexOf(member));
  return rows.map((row) => callFrom(applicationId, row, at));
}

/** Absent members are null in JSON. */
function valuesOf(call: StoredCall): unknown[] {
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

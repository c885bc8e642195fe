import { createCallIds } from "../../src/http/identity.js";
import { blocksFrom, type CallBlock, type StoredCall } from "../../src/records/call-block.js";

/** A call that began at `startedAt`, with an id to match. */
export function storedCallForTest(
  applicationId: string,
  startedAt: number,
  patch: Partial<StoredCall> = {},
): StoredCall {
  return {
    callId: createCallIds(() => startedAt)(),
    applicationId,
    startedAt,
    surface: "rest",
    provider: "github",
    method: "GET",
    origin: "https://api.github.com",
    path: "/user",
    queryKeys: [],
    status: 200,
    errorType: undefined,
    rule: "https://api.github.com",
    cause: undefined,
    totalMs: 12.3,
    tokenMs: 0.1,
    queueMs: 0.2,
    providerMs: 11.5,
    requestBytes: 0,
    responseBytes: 1024,
    isCaptured: false,
    user: undefined,
    connection: undefined,
    requestId: undefined,
    ...patch,
  };
}

/** A block of calls, however many and however long. */
export function blockForTest(applicationId: string, calls: readonly StoredCall[]): CallBlock {
  const all = { maxCalls: calls.length, maxLength: Number.POSITIVE_INFINITY };
  const ended = calls.map(({ user, ...call }) => ({ ...call, userId: user }));
  return [...blocksFrom(applicationId, ended, (userId) => userId, all)][0] as CallBlock;
}

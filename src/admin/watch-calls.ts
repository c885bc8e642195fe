import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type WatchCallRecordsResponse,
  WatchCallRecordsResponseSchema,
} from "../../gen/relay/admin/v1/call_record_pb.js";
import type { CallWatch } from "../records/call-watch.js";
import type { StoredCall } from "../records/stored-call.js";
import { messageFromCall } from "./call-record-message.js";
import type { PublicKeyOf } from "./public-keys.js";

/** What watching needs. */
export interface WatchCallsOptions {
  readonly watch: CallWatch;
  /** Name of the operator. */
  readonly whose: string;
  readonly publicKeyOf: PublicKeyOf;
  /** Resolves when the service begins to stop, or when the signal aborts. */
  readonly stopped: (signal: AbortSignal) => Promise<void>;
}

/** How long somebody may watch, in milliseconds; whoever wants to see more begins again. */
export const MAX_WATCH_MS = 3_600_000;
/** An answer without a call, so that proxies keep the stream, and a client that is gone is noticed. Milliseconds. */
const HEARTBEAT_MS = 15_000;

/** Answers with the calls that are wanted, as they end. */
export async function* watchCalls(
  { watch, whose, publicKeyOf, stopped }: WatchCallsOptions,
  isWanted: (call: StoredCall) => boolean,
  signal: AbortSignal,
): AsyncGenerator<WatchCallRecordsResponse, void, undefined> {
  const watcher = await watch.open(whose, isWanted);
  if (watcher === undefined) {
    throw new ConnectError("Too many are watching. Try again when one has ended.", Code.ResourceExhausted);
  }
  const ended = AbortSignal.any([signal, AbortSignal.timeout(MAX_WATCH_MS)]);
  void stopped(ended).then(() => watcher.close());
  try {
    yield create(WatchCallRecordsResponseSchema);
    for (let seen = await watcher.take(HEARTBEAT_MS); seen; seen = await watcher.take(HEARTBEAT_MS)) {
      const callRecords = [];
      for (const call of seen.calls) callRecords.push(messageFromCall(call, await publicKeyOf(call.applicationId)));
      yield create(WatchCallRecordsResponseSchema, { callRecords, skippedCount: BigInt(seen.skipped) });
    }
  } finally {
    watcher.close();
  }
}

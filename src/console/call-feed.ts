import type { CallRecordJson, WatchCallRecordsRequestJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import { type Api, NO_ANSWER } from "./api.js";
import { type LiveCall, liveCallFrom } from "./frames.js";
import { ApiError } from "./loading.js";

/** The last calls, kept up to date. */
export interface CallFeed {
  /** Newest first. */
  readonly calls: readonly LiveCall[];
  /** The first calls are still being loaded. */
  readonly isBusy: boolean;
  /** Calls seen since the start, including those dropped from `calls`. */
  readonly count: number;
  /** How many of them failed. */
  readonly failures: number;
  /** Why no calls arrive at the moment; undefined when they do. */
  readonly problem: string | undefined;
  /** Starts over with another filter: loads the last matching calls, then follows new ones. */
  follow(filter: WatchCallRecordsRequestJson): void;
  stop(): void;
}

/** Number of calls kept: enough for the figures. */
const MAX_CALLS = 200;
/** Retry delay in milliseconds; a restarting relay is back sooner. */
const RETRY_MS = 2000;

/** @param onChange called for new calls and for errors. */
export function createCallFeed(api: Api, onChange: () => void): CallFeed {
  let following = new AbortController();
  const feed = {
    calls: [] as readonly LiveCall[],
    ...{ isBusy: false, count: 0, failures: 0, problem: undefined as string | undefined },
    follow(filter: WatchCallRecordsRequestJson) {
      following.abort();
      following = new AbortController();
      Object.assign(feed, { calls: [], isBusy: true, count: 0, failures: 0 });
      void keepWatching(filter, following.signal);
    },
    stop: () => following.abort(),
  };

  function add(records: readonly CallRecordJson[]): void {
    const known = new Set(feed.calls.map(({ record }) => record.callId));
    const fresh = records.filter(({ callId }) => !known.has(callId)).map(liveCallFrom);
    feed.count += fresh.length;
    feed.failures += fresh.filter(({ record }) => record.errorType).length;
    feed.calls = [...fresh.reverse(), ...feed.calls].slice(0, MAX_CALLS);
    onChange();
  }

  /** Lists past calls only after the stream's first message, so that no call falls in between. */
  async function watch(filter: WatchCallRecordsRequestJson, signal: AbortSignal): Promise<void> {
    let isFirst = true;
    for await (const { callRecords = [] } of api.stream("CallRecordService/WatchCallRecords", filter, signal)) {
      if (signal.aborted) return;
      if (isFirst) {
        const past = await api.call("CallRecordService/ListCallRecords", { ...filter, pageSize: MAX_CALLS });
        if (signal.aborted) return;
        feed.isBusy = false;
        add((past.callRecords ?? []).toReversed());
      }
      isFirst = false;
      feed.problem = undefined;
      add(callRecords);
    }
  }

  /** Opens a new stream whenever one ends: after an hour, or when the relay stops. */
  async function keepWatching(filter: WatchCallRecordsRequestJson, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await watch(filter, signal).catch((error: unknown) => {
        if (signal.aborted) return;
        feed.isBusy = false;
        feed.problem = error instanceof ApiError ? error.message : NO_ANSWER;
        onChange();
      });
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  return feed;
}

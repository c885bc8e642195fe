import { create } from "@bufbuild/protobuf";
import { type Duration, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import {
  type CallCapture,
  CallCaptureSchema,
  type CallRecord,
  CallRecordSchema,
  type CallRecordService,
  type ListCallRecordsRequest,
  ListCallRecordsResponseSchema,
  StartCallCaptureResponseSchema,
  type WatchCallRecordsResponse,
  WatchCallRecordsResponseSchema,
} from "../../gen/relay/admin/v1/call_record_pb.js";
import { namesOf } from "../providers/provider.js";
import { type StoredCall, USER_PURPOSE, userText } from "../records/call-block.js";
import type { CaptureContent } from "../records/call-capture.js";
import { CallWatch } from "../records/call-watch.js";
import { findCapture } from "../records/capture-store.js";
import {
  type CallFilter,
  type CallPosition,
  findCall,
  isWantedCall,
  listCalls,
  type OnUnreadable,
} from "../records/list-calls.js";
import { operatorContextKey } from "./admit.js";
import { captureCalls, DEFAULT_CAPTURE_MINUTES, MAX_CAPTURE_MINUTES } from "./applications.js";
import {
  type AdminOptions,
  administrationFor,
  durationFromMs,
  invalidArgument,
  NUMBER_PART,
  namedApplication,
  noApplication,
  notFound,
  pageFrom,
  required,
  requiredId,
  timeFrom,
} from "./standard-methods.js";

/** Most unreadable blocks reported: a few lines are enough to show what is wrong. */
const MAX_TOLD = 20;

/** relay.admin.v1.CallRecordService: message → records → message. */
export function createCallRecordService(options: AdminOptions): ServiceImpl<typeof CallRecordService> {
  const { store, onFault, stopped } = options;
  const told = new Set<number>();
  /** Logs each unreadable block once, up to {@link MAX_TOLD} blocks. */
  const onUnreadable: OnUnreadable = ({ sequence }, error) => {
    if (told.has(sequence) || told.size === MAX_TOLD) return;
    told.add(sequence);
    onFault("call records", error);
  };
  const watch = new CallWatch({
    calls: store.calls,
    onUnreadable,
    onFault: (error) => onFault("call records", error),
  });
  return {
    async getCallRecord({ callId }, context) {
      const call = await findCall(store.calls, required(callId, "call_id"), (block, error) => {
        onUnreadable(block, error);
        throw new ConnectError("The record of this call cannot be read; the relay's log says why.", Code.DataLoss);
      });
      if (call === undefined) throw notFound("record of this call");
      const message = messageFromCall(call, await store.applications.publicKeyOf(call.applicationId));
      const userId = call.connection === undefined ? undefined : await store.connections.userOf(call.connection);
      return { ...message, userId: userId ?? "", ...(await captureFor(options, callId, context)) };
    },
    async listCallRecords(request) {
      const filter = await listFilterFrom(options, request);
      const { publicKey, providerName, errorType, userId, requestId } = request;
      const told = [publicKey, providerName, errorType, userId, requestId, filter.startAt, filter.endAt];
      const page = pageFrom(request, told, [NUMBER_PART, NUMBER_PART]);
      const position = { pageSize: page.size, from: positionFrom(page.after) };
      const { calls, next } = await listCalls(store.calls, filter, position, onUnreadable);
      const callRecords = await messagesFromCalls(calls, store.applications);
      const nextPageToken = next === undefined ? "" : page.tokenAfter([String(next.sequence), String(next.index)]);
      return create(ListCallRecordsResponseSchema, { callRecords, nextPageToken });
    },
    async *watchCallRecords(request, { signal, values }) {
      const filter = await filterFrom(options, request);
      const { name: whose = "", session } = values.get(operatorContextKey) ?? {};
      const isOver = async () =>
        session !== undefined && (options.now() >= session.endsAt || (await store.sessions.isEnded(session.id)));
      yield* watchCalls(
        { watch, whose, applications: store.applications, stopped, isOver },
        (call) => isWantedCall(call, filter),
        signal,
      );
    },
    async startCallCapture({ publicKey, duration }, context) {
      const { captureUntil } = await capture(options, publicKey, minutesFrom(duration), context);
      return create(StartCallCaptureResponseSchema, { endTime: timestampFromMs(captureUntil) });
    },
    async stopCallCapture({ publicKey }, context) {
      await capture(options, publicKey, 0, context);
      return {};
    },
  };
}

/** Captures may contain personal data, so only the role `operator` gets them. */
async function captureFor({ store, sealer }: AdminOptions, callId: string, { values }: HandlerContext) {
  if (values.get(operatorContextKey)?.role !== "operator") return {};
  const { content, problem = "" } = await findCapture(store.captures, sealer, callId);
  return { ...(content && { capture: messageFromCapture(content) }), captureProblem: problem };
}

async function filterFrom(
  { store, catalog }: AdminOptions,
  { publicKey, providerName, errorType }: Pick<ListCallRecordsRequest, "publicKey" | "providerName" | "errorType">,
): Promise<CallFilter> {
  return {
    applicationId: publicKey === "" ? undefined : (await namedApplication(store.applications, publicKey)).id,
    providers: providerName === "" ? undefined : namesOf(catalog, providerName),
    errorType: errorType || undefined,
  };
}

async function listFilterFrom(options: AdminOptions, request: ListCallRecordsRequest): Promise<CallFilter> {
  const { userId, requestId } = request;
  const filter = await filterFrom(options, request);
  const { applicationId } = filter;
  if (userId !== "" && applicationId === undefined)
    throw invalidArgument("public_key", "is required, because user ids belong to an application");
  return {
    ...filter,
    ...(userId !== "" && { users: options.sealer.digests(USER_PURPOSE, userText(applicationId ?? "", userId)) }),
    ...(requestId !== "" && { requestId }),
    startAt: timeFrom(request.startTime, "start_time"),
    endAt: timeFrom(request.endTime, "end_time"),
  };
}

function positionFrom(key: readonly string[] | undefined): CallPosition | undefined {
  if (key === undefined) return undefined;
  const [sequence = 0, index = 0] = key.map(Number);
  return { sequence, index };
}

async function capture(options: AdminOptions, publicKey: string, minutes: number, context: HandlerContext) {
  const administration = administrationFor(options, context);
  const updated = await captureCalls(administration, requiredId(publicKey, "public_key"), minutes);
  if (updated === undefined) throw noApplication();
  return updated;
}

function minutesFrom(duration: Duration | undefined): number {
  if (duration === undefined) return DEFAULT_CAPTURE_MINUTES;
  const minutes = Number(duration.seconds) / 60;
  const isWhole = Number.isInteger(minutes) && duration.nanos === 0;
  if (isWhole && minutes >= 1 && minutes <= MAX_CAPTURE_MINUTES) return minutes;
  throw invalidArgument("duration", `must be whole minutes from 1 to ${MAX_CAPTURE_MINUTES}`);
}

type PublicKeys = Pick<AdminOptions["store"]["applications"], "publicKeyOf">;

/** Looks up each application once. */
async function messagesFromCalls(calls: readonly StoredCall[], applications: PublicKeys): Promise<CallRecord[]> {
  const publicKeys = new Map<string, string | undefined>();
  for (const { applicationId: id } of calls) {
    if (!publicKeys.has(id)) publicKeys.set(id, await applications.publicKeyOf(id));
  }
  return calls.map((call) => messageFromCall(call, publicKeys.get(call.applicationId)));
}

/**
 * The message of a recorded call.
 *
 * @param publicKey the application's; undefined when the application was deleted.
 */
function messageFromCall(call: StoredCall, publicKey: string | undefined): CallRecord {
  return create(CallRecordSchema, {
    callId: call.callId,
    publicKey: publicKey ?? "",
    startTime: timestampFromMs(call.startedAt),
    surface: call.surface,
    providerName: call.provider ?? "",
    method: call.method ?? "",
    origin: call.origin ?? "",
    path: call.path ?? "",
    queryKeys: [...call.queryKeys],
    statusCode: call.status,
    errorType: call.errorType ?? "",
    rule: call.rule ?? "",
    cause: call.cause ?? "",
    totalDuration: durationFromMs(call.totalMs),
    ...(call.tokenMs === undefined ? {} : { tokenDuration: durationFromMs(call.tokenMs) }),
    ...(call.queueMs === undefined ? {} : { queueDuration: durationFromMs(call.queueMs) }),
    ...(call.providerMs === undefined ? {} : { providerDuration: durationFromMs(call.providerMs) }),
    requestBytes: BigInt(call.requestBytes),
    responseBytes: BigInt(call.responseBytes),
    captured: call.isCaptured,
    requestId: call.requestId ?? "",
  });
}

/** The message of a captured call. */
function messageFromCapture({ request, response, message }: CaptureContent): CallCapture {
  const { isSent: sent, method, url } = request;
  return create(CallCaptureSchema, {
    request: { sent, method, url, ...contentOf(request) },
    ...(response && { response: { statusCode: response.statusCode, ...contentOf(response) } }),
    message: message ?? "",
  });
}

function contentOf({ headers, body }: Pick<CaptureContent["request"], "headers" | "body">) {
  return {
    headers: headers.map(([name, value]) => ({ name, value })),
    ...(body && { body: { sizeBytes: BigInt(body.bytes), text: body.text ?? "", truncated: body.isCut } }),
  };
}

interface WatchCallsOptions {
  readonly watch: CallWatch;
  /** Name of the operator. */
  readonly whose: string;
  readonly applications: PublicKeys;
  /** Resolves when the service begins to stop, or when the signal aborts. */
  readonly stopped: (signal: AbortSignal) => Promise<void>;
  /** Checked before calls are sent: when the session expires or is signed out, the stream ends too. */
  readonly isOver: () => Promise<boolean>;
}

/** Longest duration of one stream. The client then has to open another. */
export const MAX_WATCH_MS = 3_600_000;
/** Interval of empty messages, which keep proxies from closing the stream and detect a client that has gone. */
const HEARTBEAT_MS = 15_000;

/** Streams the calls that match, as they end. */
async function* watchCalls(
  { watch, whose, applications, stopped, isOver }: WatchCallsOptions,
  isWanted: (call: StoredCall) => boolean,
  signal: AbortSignal,
): AsyncGenerator<WatchCallRecordsResponse, void, undefined> {
  const watcher = await watch.open(whose, isWanted);
  if (watcher === undefined) {
    throw new ConnectError(
      "Too many clients are watching. Try again when one has disconnected.",
      Code.ResourceExhausted,
    );
  }
  const ended = AbortSignal.any([signal, AbortSignal.timeout(MAX_WATCH_MS)]);
  void stopped(ended).then(() => watcher.close());
  try {
    yield create(WatchCallRecordsResponseSchema);
    for (let seen = await watcher.take(HEARTBEAT_MS); seen; seen = await watcher.take(HEARTBEAT_MS)) {
      if (await isOver()) throw new ConnectError("This session has ended.", Code.Unauthenticated);
      const callRecords = await messagesFromCalls(seen.calls, applications);
      yield create(WatchCallRecordsResponseSchema, { callRecords, skippedCount: BigInt(seen.skipped) });
    }
  } finally {
    watcher.close();
  }
}

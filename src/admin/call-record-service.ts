import { create } from "@bufbuild/protobuf";
import { type Duration, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type CallRecordService,
  ListCallRecordsResponseSchema,
  StartCallCaptureResponseSchema,
} from "../../gen/relay/admin/v1/call_record_pb.js";
import { createCallWatch } from "../records/call-watch.js";
import { findCall } from "../records/find-call.js";
import { type CallFilter, type CallPosition, isWantedCall, listCalls } from "../records/list-calls.js";
import { openCapture } from "../records/seal-capture.js";
import { messageFromCall, messageFromCapture } from "./call-record-message.js";
import { captureCalls, DEFAULT_CAPTURE_MINUTES, MAX_CAPTURE_MINUTES } from "./capture-calls.js";
import { invalidArgument, required } from "./invalid-argument.js";
import { namedApplication, noApplication, notFound, requiredId } from "./named.js";
import { operatorContextKey } from "./operator-context.js";
import { type AdminOptions, administrationFor } from "./options.js";
import { NUMBER_PART, pageFrom } from "./page.js";
import { createPublicKeys } from "./public-keys.js";
import { watchCalls } from "./watch-calls.js";

/** relay.admin.v1.CallRecordService: message → records → message. */
export function createCallRecordService(options: AdminOptions): ServiceImpl<typeof CallRecordService> {
  const { store, onFault, stopped } = options;
  const publicKeyOf = createPublicKeys(store.applications);
  const watch = createCallWatch({ calls: store.calls, onFault: (error) => onFault("call records", error) });
  return {
    async getCallRecord({ callId }, context) {
      const call = await findCall(store.calls, required(callId, "call_id"));
      if (call === undefined) throw notFound("record of this call");
      const message = messageFromCall(call, await publicKeyOf(call.applicationId));
      const capture = await captureFor(options, callId, context);
      return capture === undefined ? message : { ...message, capture };
    },
    async listCallRecords(request) {
      const { publicKey, providerName, errorType } = request;
      const page = pageFrom(request, [publicKey, providerName, errorType], [NUMBER_PART, NUMBER_PART]);
      const position = { pageSize: page.size, from: positionFrom(page.after) };
      const { calls, next } = await listCalls(store.calls, await filterFrom(options, request), position);
      const callRecords = [];
      for (const call of calls) callRecords.push(messageFromCall(call, await publicKeyOf(call.applicationId)));
      const nextPageToken = next === undefined ? "" : page.tokenAfter([String(next.sequence), String(next.index)]);
      return create(ListCallRecordsResponseSchema, { callRecords, nextPageToken });
    },
    async *watchCallRecords(request, { signal, values }) {
      const filter = await filterFrom(options, request);
      const { name: whose = "" } = values.get(operatorContextKey) ?? {};
      yield* watchCalls({ watch, whose, publicKeyOf, stopped }, (call) => isWantedCall(call, filter), signal);
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

/** What was captured may be personal: it is for operators alone. */
async function captureFor({ store, sealer }: AdminOptions, callId: string, { values }: HandlerContext) {
  if (values.get(operatorContextKey)?.role !== "operator") return undefined;
  const sealed = await store.captures.find(callId);
  return sealed && messageFromCapture(openCapture(sealer, sealed));
}

async function filterFrom(
  { store }: AdminOptions,
  {
    publicKey,
    providerName,
    errorType,
  }: { readonly publicKey: string; readonly providerName: string; readonly errorType: string },
): Promise<CallFilter> {
  return {
    applicationId: publicKey === "" ? undefined : (await namedApplication(store.applications, publicKey)).id,
    provider: providerName || undefined,
    errorType: errorType || undefined,
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

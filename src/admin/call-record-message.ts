import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type CallCapture,
  CallCaptureSchema,
  type CallRecord,
  CallRecordSchema,
  type CapturedBodySchema,
} from "../../gen/relay/admin/v1/call_record_pb.js";
import type { CaptureContent, CapturedBody, HeaderPairs } from "../records/capture-content.js";
import type { StoredCall } from "../records/stored-call.js";

/**
 * A recorded call as operators see it.
 *
 * @param publicKey the application's; undefined when it was deleted since.
 */
export function messageFromCall(call: StoredCall, publicKey: string | undefined): CallRecord {
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
  });
}

/** What was captured of a call as operators see it. */
export function messageFromCapture({ request, response, message }: CaptureContent): CallCapture {
  return create(CallCaptureSchema, {
    request: {
      sent: request.isSent,
      method: request.method,
      url: request.url,
      headers: headersFrom(request.headers),
      ...bodyFrom(request.body),
    },
    ...(response === undefined
      ? {}
      : {
          response: {
            statusCode: response.statusCode,
            headers: headersFrom(response.headers),
            ...bodyFrom(response.body),
          },
        }),
    message: message ?? "",
  });
}

function headersFrom(pairs: HeaderPairs) {
  return pairs.map(([name, value]) => ({ name, value }));
}

function bodyFrom(body: CapturedBody | undefined): { body?: MessageInitShape<typeof CapturedBodySchema> } {
  if (body === undefined) return {};
  return { body: { sizeBytes: BigInt(body.bytes), text: body.text ?? "", truncated: body.isCut } };
}

function durationFromMs(ms: number): Duration {
  const seconds = Math.floor(ms / 1000);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1000) * 1e6) });
}

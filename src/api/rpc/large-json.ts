import { fromJsonString } from "@bufbuild/protobuf";
import { type CallRequest, CallRequestSchema } from "../../../gen/relay/v1/relay_pb.js";
import type { JsonRange } from "../../json/json-scan.js";
import { base64FromJson, kindAt, membersInSteps } from "../../json/json-slice.js";
import { validateJsonInSteps } from "../../json/json-validator.js";
import { joinedInSteps } from "../../lib/chunks.js";
import type { Steps } from "../../lib/turns.js";
import { formatError } from "../../model/errors.js";
import { MAX_MESSAGE_KEYS } from "./message-parts.js";
import { JSON_OPTIONS } from "./row.js";

/**
 * What is nested deeper than protobuf-es reads is for it to refuse, however many keys follow: it has its own words, and is
 * soon there.
 */
const LIMITS = { maxDepth: 100, maxKeys: MAX_MESSAGE_KEYS };

/**
 * Reads a large CallRequest in JSON whose size is that of `body`: protobuf-es, which would take it in one go, reads the
 * rest of it. Undefined for everything else, good or bad: that is for protobuf-es to read, or to refuse.
 *
 * But what has more members than any call gets no further: protobuf-es would hold everybody up with it for a second,
 * and a list of them would take many times the memory that it is counted with, for each request that comes at the same
 * time. Fails with CALL_FORMAT_ERROR.
 */
export function* requestFromLargeJson(text: Buffer): Steps<CallRequest | undefined> {
  const body = (yield* isJsonInSteps(text)) ? yield* bodyOf(text) : undefined;
  // protobuf-es takes no data URL.
  const bytes = body && (yield* base64FromJson(text, body, false));
  if (body === undefined || bytes === undefined) return undefined;
  // Before the rest is read, which may be much larger as a message than as text: it waits for no turn.
  const joined = yield* joinedInSteps(bytes);
  const others = Buffer.concat([text.subarray(0, body.start), EMPTY_STRING, text.subarray(body.end)]);
  const request = parsed(others);
  if (request?.call === undefined) return undefined;
  request.call.body = joined as Uint8Array<ArrayBuffer>;
  return request;
}

const EMPTY_STRING = Buffer.from('""');

function* isJsonInSteps(text: Buffer): Steps<boolean> {
  const verdict = yield* validateJsonInSteps(text, LIMITS);
  if (verdict === "keys") throw formatError(`The message has more than ${LIMITS.maxKeys} keys.`);
  return verdict === "valid";
}

/** The string of `body` in `call`. Where either stands twice, protobuf-es refuses the rest. */
function* bodyOf(text: Buffer): Steps<JsonRange | undefined> {
  const call = (yield* membersInSteps(text)).find(({ key }) => key === "call");
  if (call === undefined) return undefined;
  const body = (yield* membersInSteps(text, call.start, call.end)).find(({ key }) => key === "body");
  return body !== undefined && kindAt(text, body.start) === "string" ? body : undefined;
}

function parsed(text: Buffer): CallRequest | undefined {
  try {
    return fromJsonString(CallRequestSchema, JSON_OPTIONS.textDecoder.decode(text), JSON_OPTIONS);
  } catch {
    // protobuf-es reads it once more, as it came.
    return undefined;
  }
}

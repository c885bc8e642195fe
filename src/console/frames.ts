import type { CallRecordJson } from "../../gen/relay/admin/v1/call_record_pb.js";

/** One enveloped message of a Connect stream (https://connectrpc.com/docs/protocol#streaming-rpcs). */
interface Frame {
  /** The last frame, which says how the stream ended. */
  readonly isEnd: boolean;
  readonly json: unknown;
}

const HEAD_BYTES = 5;
const END_FLAG = 2;

/** Encodes a message: one byte of flags, four bytes of length, JSON. */
export function frameFrom(message: unknown): Uint8Array<ArrayBuffer> {
  const json = new TextEncoder().encode(JSON.stringify(message));
  const frame = new Uint8Array(HEAD_BYTES + json.length);
  new DataView(frame.buffer).setUint32(1, json.length);
  frame.set(json, HEAD_BYTES);
  return frame;
}

/** Decodes messages, however the stream is split into chunks. Throws SyntaxError for invalid JSON. */
export async function* framesFrom(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame, void, undefined> {
  const reader = body.getReader();
  let bytes = new Uint8Array();
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      bytes = joined(bytes, chunk.value);
      for (let end = endOf(bytes); end !== undefined; end = endOf(bytes)) {
        const json = new TextDecoder().decode(bytes.subarray(HEAD_BYTES, end));
        yield { isEnd: ((bytes[0] ?? 0) & END_FLAG) !== 0, json: JSON.parse(json) };
        bytes = bytes.slice(end);
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** End of the first message; undefined when it is incomplete. */
function endOf(bytes: Uint8Array): number | undefined {
  if (bytes.length < HEAD_BYTES) return undefined;
  const end = HEAD_BYTES + new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
  return bytes.length < end ? undefined : end;
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(one.length + other.length);
  all.set(one);
  all.set(other, one.length);
  return all;
}

/** One call that has ended, and where its time went. */
export interface LiveCall {
  readonly record: CallRecordJson;
  /** The whole call, in milliseconds. */
  readonly totalMs: number;
  /** The part spent waiting for the provider. */
  readonly providerMs: number;
  /** The part spent waiting for a token and in the queue. */
  readonly waitMs: number;
  /** The remainder: the relay's own time. */
  readonly relayMs: number;
}

/** Pure. */
export function liveCallFrom(record: CallRecordJson): LiveCall {
  const totalMs = msFrom(record.totalDuration);
  const providerMs = msFrom(record.providerDuration);
  const waitMs = msFrom(record.tokenDuration) + msFrom(record.queueDuration);
  return { record, totalMs, providerMs, waitMs, relayMs: Math.max(0, totalMs - providerMs - waitMs) };
}

/** @param duration ProtoJSON of google.protobuf.Duration, such as `0.0125s`; undefined for 0. Pure. */
export function msFrom(duration: string | undefined): number {
  return duration === undefined ? 0 : Number.parseFloat(duration) * 1000;
}

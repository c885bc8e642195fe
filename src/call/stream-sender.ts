import { type Bytes, bytesOf } from "../lib/chunks.js";
import { asksForBody } from "../providers/expiry-signal.js";
import { headerValue } from "../upstream/fields.js";
import type { Upstream, UpstreamAnswer, UpstreamStream } from "../upstream/request.js";
import type { AllowedCall } from "./allowed-call.js";
import type { Sender } from "./send-with-token.js";
import { isJsonType, parseMediaType } from "./text.js";

/** An answer of which only the beginning is here. */
export interface StreamedAnswer extends UpstreamAnswer {
  /** What was looked at already; comes before the rest. */
  readonly body: Bytes;
  readonly stream: UpstreamStream;
}

/** Errors are shorter; an answer that is longer does not say that the token has ended. */
const MAX_START_BYTES = 64 * 1024;

const NOTHING = Buffer.alloc(0);

/**
 * Sends requests whose answers are handed on as they come. The body is waited for only where the provider's definition
 * names a member of it as the sign of an ended token, and only when it is JSON; then its first 64 KiB, at most, are read
 * before the head leaves, within the deadline of the call. Every other sign stands in status and fields.
 */
export function createStreamSender(upstream: Upstream): Sender<StreamedAnswer> {
  return {
    async send(request, allowed) {
      const stream = await upstream.stream(request, allowed.call, allowed.trace);
      try {
        const { statusCode, rawHeaders, isPossiblyTruncated = false } = stream;
        const body = speaksOfToken(allowed, stream) ? await startOf(stream.body) : NOTHING;
        return { statusCode, rawHeaders, isPossiblyTruncated, body: bytesOf(body), stream };
      } catch (error) {
        stream.close();
        throw error;
      }
    },
    discard: ({ stream }) => stream.close(),
  };
}

function speaksOfToken({ provider }: AllowedCall, { statusCode, rawHeaders }: UpstreamStream): boolean {
  if (!asksForBody(provider, statusCode)) return false;
  return isJsonType(parseMediaType(headerValue(rawHeaders, "content-type")).essence);
}

async function startOf(chunks: AsyncIterator<Buffer>): Promise<Buffer> {
  const start: Buffer[] = [];
  let length = 0;
  while (length < MAX_START_BYTES) {
    const chunk = await chunks.next();
    if (chunk.done === true) break;
    start.push(chunk.value);
    length += chunk.value.length;
  }
  return Buffer.concat(start, length);
}

import type { DescMessage } from "@bufbuild/protobuf";
import type { Compression } from "@connectrpc/connect/protocol";
import { createChunks } from "../chunks.js";
import { isJson } from "../json/json-checker.js";
import { requireFewParts } from "./message-parts.js";

/** https://connectrpc.com/docs/protocol/#streaming-rpcs: flags, of which the lowest says compressed, and the length. */
const PREFIX_BYTES = 5;
const COMPRESSED_FLAG = 1;

/** How a body is written, by the fields of its request. */
export interface MessageForm {
  readonly isJson: boolean;
  /** Its messages stand behind prefixes. */
  readonly isEnveloped: boolean;
  readonly isCompressed: boolean;
}

/** The form of a body, by the spellings that connect takes; what is spelled otherwise it refuses. */
export function messageFormFrom(type = "", encoding = "identity"): MessageForm {
  const [, protocol = "", codec] = /^application\/(grpc-web|grpc|connect|)\+?(json|proto|)/i.exec(type) ?? [];
  const isEnveloped = protocol !== "";
  return {
    isJson: codec?.toLowerCase() === "json",
    isEnveloped,
    isCompressed: !isEnveloped && encoding !== "identity",
  };
}

/**
 * The body of a request with one message, in one piece: connect waits for all of it anyway, and its own way to put chunks
 * together takes time with the square of their number: 50,000 chunks of one byte would hold the event loop for seconds
 * (threats I15). What is longer than `maxBytes` is handed on as it comes, for connect to refuse.
 *
 * @throws ConnectError INVALID_ARGUMENT for a message that would take long to decode.
 */
export async function* inOnePiece(
  body: AsyncIterable<Uint8Array>,
  { schema, form, maxBytes }: { readonly schema: DescMessage; readonly form: MessageForm; readonly maxBytes: number },
): AsyncGenerator<Uint8Array> {
  let chunks = createChunks();
  let isFitting = true;
  for await (const chunk of body) {
    chunks.push(chunk);
    isFitting &&= chunks.length <= maxBytes + PREFIX_BYTES;
    if (isFitting) continue;
    yield chunks.concat();
    chunks = createChunks();
  }
  if (chunks.length === 0) return;
  const bytes = chunks.concat();
  if (isFitting && !form.isJson) for (const message of plainMessagesIn(bytes, form)) requireFewParts(schema, message);
  yield bytes;
}

/** A client may send more than the one message; what is compressed is looked at when it is not any more. */
function* plainMessagesIn(bytes: Buffer, { isEnveloped, isCompressed }: MessageForm): Generator<Buffer> {
  if (!isEnveloped) {
    if (!isCompressed) yield bytes;
    return;
  }
  for (let at = 0; at + PREFIX_BYTES <= bytes.length; ) {
    const end = at + PREFIX_BYTES + bytes.readUInt32BE(at + 1);
    if (((bytes[at] as number) & COMPRESSED_FLAG) === 0) yield bytes.subarray(at + PREFIX_BYTES, end);
    at = end;
  }
}

/** Refuses what would take long to decode once it is decompressed. What is JSON is judged where it is read. */
export function withFewParts(compression: Compression, schema: DescMessage): Compression {
  return {
    ...compression,
    async decompress(bytes, maxBytes) {
      const message = await compression.decompress(bytes, maxBytes);
      if (!isJson(message)) requireFewParts(schema, message);
      return message;
    },
  };
}

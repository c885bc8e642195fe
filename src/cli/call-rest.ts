import { fromJsonString, getOption } from "@bufbuild/protobuf";
import { request } from "undici";
import { http } from "../../gen/google/api/annotations_pb.js";
import { CallResponseSchema, RelayService } from "../../gen/relay/v1/relay_pb.js";
import { slicePath } from "../json/json-path.js";
import {
  CALL_TIMEOUT_MS,
  type CallRequestText,
  type CallRow,
  type CallTarget,
  jsonBodyFrom,
  MAX_ANSWER_BYTES,
  unreachable,
} from "./call-row.js";
import { failure } from "./command.js";

/** Performs a call over the JSON route. */
export async function callOverRest(call: CallRequestText, target: CallTarget): Promise<CallRow> {
  return rowFromEnvelope(await post(restUrl(call, target), jsonBodyFrom(call), target));
}

/** Address of the JSON route for a call; the path is read from the schema. */
export function restUrl(call: CallRequestText, { relayUrl, responseMode }: CallTarget): string {
  const { pattern } = getOption(RelayService.method.call, http);
  const path = String(pattern.value).replace("{provider_name}", encodeURIComponent(call.providerName));
  const query = new URLSearchParams({ user_id: call.userId, public_key: call.publicKey });
  if (call.userSignature !== undefined) query.set("user_signature", call.userSignature);
  if (responseMode === "body") query.set("response_mode", "RESPONSE_MODE_BODY");
  return `${relayUrl}${path}?${query}`;
}

async function post(url: string, body: string, { relayUrl, privateKey }: CallTarget): Promise<Buffer> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (privateKey !== undefined) headers["authorization"] = `Bearer ${privateKey}`;
  try {
    const signal = AbortSignal.timeout(CALL_TIMEOUT_MS);
    const answer = await request(url, { method: "POST", headers, body, signal });
    return await readAnswer(answer.body);
  } catch (error) {
    if (error instanceof RangeError) throw failure(error.message, error);
    const { code, name } = error as NodeJS.ErrnoException;
    throw failure(unreachable(relayUrl, code ?? name), error);
  }
}

async function readAnswer(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) throw new RangeError(`The answer is larger than ${MAX_ANSWER_BYTES} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function rowFromEnvelope(envelope: Buffer): CallRow {
  try {
    const [row] = fromJsonString(CallResponseSchema, envelope.toString(), { ignoreUnknownFields: true }).rows;
    const range = slicePath(envelope, "rows.0");
    if (row !== undefined && range !== undefined)
      return { row, json: envelope.toString("utf8", range.start, range.end) };
  } catch {
    // Said below: whatever the parser found, there is no row, and its text would quote the answer.
  }
  throw failure("The answer is not a relay's envelope. Check the address that --relay or RELAY_LISTEN names.");
}

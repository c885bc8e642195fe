import { fromJsonString, getOption, type JsonObject, type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { request } from "undici";
import { http } from "../../gen/google/api/annotations_pb.js";
import {
  type CallRequestSchema,
  CallResponseSchema,
  RelayService,
  ResponseMode,
  ResultRowSchema,
} from "../../gen/relay/v1/relay_pb.js";
import { REQUEST_ID } from "../http/exchange.js";
import { slicePath } from "../json/json-path.js";
import { surveyJson } from "../json/json-survey.js";
import {
  CALL_TIMEOUT_MS,
  type CallRequestText,
  type CallRow,
  type CallTarget,
  jsonBodyFrom,
  MAX_ANSWER_BYTES,
  type Protocol,
  unreachable,
} from "./call-row.js";
import { failure, usageError } from "./command.js";

/** Protocols that the typed client can use. */
export type RpcProtocol = Exclude<Protocol, "rest">;

/** Performs a call with the typed client. */
export async function callOverRpc(call: CallRequestText, target: CallTarget, protocol: RpcProtocol): Promise<CallRow> {
  const message = messageFrom(call, target);
  const client = createClient(RelayService, createTransport(target.relayUrl, protocol));
  const headers: Record<string, string> =
    target.privateKey === undefined ? {} : { authorization: `Bearer ${target.privateKey}` };
  try {
    const { rows } = await client.call(message, { headers, timeoutMs: CALL_TIMEOUT_MS });
    const [row] = rows;
    if (row === undefined) throw failure("The relay answered without a row. Please report this.");
    return { row, json: toJsonString(ResultRowSchema, row) };
  } catch (error) {
    throw error instanceof ConnectError ? failure(textFrom(error, target.relayUrl), error) : error;
  }
}

/** URL of the method, the same for every typed protocol. */
export function rpcUrl(relayUrl: string): string {
  return `${relayUrl}/${RelayService.typeName}/${RelayService.method.call.name}`;
}

function createTransport(baseUrl: string, protocol: RpcProtocol): Transport {
  const options = { baseUrl, readMaxBytes: MAX_ANSWER_BYTES };
  switch (protocol) {
    case "connect":
      return createConnectTransport({ ...options, httpVersion: "1.1" });
    case "grpc":
      return createGrpcTransport(options);
    case "grpc-web":
      return createGrpcWebTransport({ ...options, httpVersion: "1.1" });
  }
}

function messageFrom(call: CallRequestText, { responseMode }: CallTarget): MessageInitShape<typeof CallRequestSchema> {
  const { providerName, userId, publicKey, userSignature = "", url, method, headers } = call;
  return {
    providerName,
    userId,
    publicKey,
    userSignature,
    call: { url, method, headers, ...payloadFrom(call.payload) },
    responseMode: responseMode === "body" ? ResponseMode.BODY : ResponseMode.DATA,
  };
}

/**
 * Numbers in a google.protobuf.Struct are doubles. Refuses those that would be rounded, since that would go unnoticed.
 */
function payloadFrom(text: string | undefined): { payload?: JsonObject } {
  if (text === undefined) return {};
  if (!surveyJson(Buffer.from(text)).hasInexactNumber) return { payload: JSON.parse(text) as JsonObject };
  throw usageError("-d contains a number that a typed message cannot represent exactly; send it with --protocol rest.");
}

function textFrom(error: ConnectError, relayUrl: string): string {
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
  if (typeof code === "string") return unreachable(relayUrl, code);
  const isRelays = error.metadata.has(REQUEST_ID) && error.code !== Code.Unimplemented;
  if (!isRelays && !OWN_CODES.has(error.code)) return NOT_A_RELAYS;
  return `The relay refused the message (${Code[error.code]}): ${error.rawMessage}.`;
}

/** Codes of the client's own limits. */
const OWN_CODES: ReadonlySet<Code> = new Set([Code.DeadlineExceeded, Code.ResourceExhausted]);

/** The address is another server's, or that of the administration port. */
const NOT_A_RELAYS = "The answer is not a relay's envelope. Check the address in --relay or RELAY_LISTEN.";

/** Performs a call over the JSON route. */
export async function callOverRest(call: CallRequestText, target: CallTarget): Promise<CallRow> {
  return rowFromEnvelope(await post(restUrl(call, target), jsonBodyFrom(call), target));
}

/** URL of the JSON route for a call. The path comes from the schema. */
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
    // Reported below. The parser's message would quote the answer.
  }
  throw failure(NOT_A_RELAYS);
}

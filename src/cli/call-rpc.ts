import { type JsonObject, type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { type CallRequestSchema, RelayService, ResponseMode, ResultRowSchema } from "../../gen/relay/v1/relay_pb.js";
import { surveyJson } from "../json/json-survey.js";
import {
  CALL_TIMEOUT_MS,
  type CallRequestText,
  type CallRow,
  type CallTarget,
  MAX_ANSWER_BYTES,
  type Protocol,
  unreachable,
} from "./call-row.js";
import { failure, usageError } from "./command.js";

/** Protocols of the typed client. */
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

/** Address of the method, the same for every typed protocol. */
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

/** A google.protobuf.Struct holds doubles: what would be rounded is refused, since nobody would see it. */
function payloadFrom(text: string | undefined): { payload?: JsonObject } {
  if (text === undefined) return {};
  if (!surveyJson(Buffer.from(text)).hasInexactNumber) return { payload: JSON.parse(text) as JsonObject };
  throw usageError("-d has a number that a typed message cannot hold exactly; send it with --protocol rest.");
}

function textFrom(error: ConnectError, relayUrl: string): string {
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
  if (typeof code === "string") return unreachable(relayUrl, code);
  return `The relay refused the message (${Code[error.code]}): ${error.rawMessage}.`;
}

import { connect as connectHttp2 } from "node:http2";
import { fromJsonString, toJson } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { request } from "undici";
import { CallRequestSchema, RelayService, ResultRowSchema } from "../../gen/relay/v1/relay_pb.js";
import type { ScenarioCall } from "./callers.js";

/** A streamed answer, read to its end. */
export interface Streamed {
  /** The provider's head; undefined when the call failed before it. */
  readonly head: { readonly statusCode: number; readonly headers: Readonly<Record<string, string>> } | undefined;
  readonly body: Buffer;
  /** The row of a call that failed. */
  readonly row: Readonly<Record<string, unknown>> | undefined;
}

/** Performs a call over one protocol and reads the whole answer. */
export type StreamCaller = (call: ScenarioCall) => Promise<Streamed>;

/** Clients of `CallStream`, one per protocol. */
export const STREAM_TRANSPORTS: ReadonlyArray<readonly [protocol: string, transport: (baseUrl: string) => Transport]> =
  [
    ["Connect JSON", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false })],
    ["Connect binary", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true })],
    ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
    ["gRPC-Web", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ];

/** One caller per protocol, all real clients; the raw route in both versions of HTTP. */
export function createStreamCallers(url: string): ReadonlyArray<readonly [protocol: string, caller: StreamCaller]> {
  return [
    ["raw HTTP/1.1", (call) => callRaw(url, call)],
    ["raw HTTP/2", (call) => callRawOverHttp2(url, call)],
    ...STREAM_TRANSPORTS.map(([protocol, transport]) => [protocol, typedCaller(transport(url))] as const),
  ];
}

/** Path and query of the raw route. */
export function rawTarget(call: ScenarioCall): string {
  const query = new URLSearchParams({ user_id: call.userId, public_key: call.publicKey });
  if (call.privateKey !== undefined) query.set("private_key", call.privateKey);
  if (call.userSignature !== undefined) query.set("user_signature", call.userSignature);
  return `/oauth/method/${encodeURIComponent(call.providerName)}/stream?${query}`;
}

async function callRaw(url: string, call: ScenarioCall): Promise<Streamed> {
  const { statusCode, headers, body } = await request(url + rawTarget(call), {
    method: "POST",
    headers: { "content-type": "application/json", ...call.outerHeaders },
    body: JSON.stringify(call.call),
  });
  return rawAnswer(statusCode, headers as Record<string, string>, Buffer.from(await body.arrayBuffer()));
}

async function callRawOverHttp2(url: string, call: ScenarioCall): Promise<Streamed> {
  const session = connectHttp2(url);
  try {
    const stream = session.request({ ":method": "POST", ":path": rawTarget(call), ...call.outerHeaders });
    stream.end(JSON.stringify(call.call));
    const fields = await new Promise<Record<string, string>>((resolve, reject) => {
      stream.once("error", reject).once("response", (received) => resolve(received as never));
    });
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    const { ":status": status, ...headers } = fields;
    return rawAnswer(Number(status), headers, Buffer.concat(chunks));
  } finally {
    session.close();
  }
}

function rawAnswer(statusCode: number, headers: Readonly<Record<string, string>>, body: Buffer): Streamed {
  if (headers["x-error-type"] === undefined) return { head: { statusCode, headers }, body, row: undefined };
  const { rows } = JSON.parse(body.toString()) as { rows: Array<Record<string, unknown>> };
  if (rows[0]?.["statusCode"] !== statusCode) throw new Error(`status ${statusCode} is not that of the row`);
  return { head: undefined, body: Buffer.alloc(0), row: rows[0] };
}

function typedCaller(transport: Transport): StreamCaller {
  const client = createClient(RelayService, transport);
  return async ({ outerHeaders, ...call }) => {
    const message = fromJsonString(CallRequestSchema, JSON.stringify(call));
    let head: Streamed["head"];
    let row: Streamed["row"];
    const chunks: Uint8Array[] = [];
    for await (const { part } of client.callStream(message, { headers: outerHeaders ?? {} })) {
      if (row !== undefined) throw new Error("a part behind the row");
      if (part.case === "head" && head === undefined && chunks.length === 0) head = part.value;
      else if (part.case === "chunk" && head !== undefined) chunks.push(part.value);
      else if (part.case === "row") row = toJson(ResultRowSchema, part.value) as Record<string, unknown>;
      else throw new Error(`${part.case} is out of order`);
    }
    return { head, body: Buffer.concat(chunks), row };
  };
}

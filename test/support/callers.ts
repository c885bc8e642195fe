import { fromJsonString, toJsonString } from "@bufbuild/protobuf";
import { createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { request } from "undici";
import { CallRequestSchema, CallResponseSchema, RelayService } from "../../gen/relay/v1/relay_pb.js";

/** A call as a scenario describes it, in the JSON of the contract. */
export interface ScenarioCall {
  readonly providerName: string;
  readonly userId: string;
  readonly publicKey: string;
  readonly privateKey?: string;
  readonly userSignature?: string;
  readonly responseMode?: string;
  /** HTTP headers of the request to the relay itself. */
  readonly outerHeaders?: Readonly<Record<string, string>>;
  readonly call: Readonly<Record<string, unknown>>;
}

/** The one row of an envelope, as JSON. */
export type Row = Readonly<Record<string, unknown>> & { readonly statusCode: number; readonly pincStatus: string };

/** Performs a call over one protocol. */
export type Caller = (call: ScenarioCall) => Promise<Row>;

/** One caller per protocol, all real clients. */
export function createCallers(url: string): ReadonlyArray<readonly [protocol: string, caller: Caller]> {
  const h1 = { baseUrl: url, httpVersion: "1.1" } as const;
  const h2 = { baseUrl: url, httpVersion: "2" } as const;
  return [
    ["REST", (call) => callRest(url, call)],
    [
      "Connect JSON",
      typedCaller((interceptors) => createConnectTransport({ ...h1, interceptors, useBinaryFormat: false })),
    ],
    [
      "Connect binary",
      typedCaller((interceptors) => createConnectTransport({ ...h2, interceptors, useBinaryFormat: true })),
    ],
    ["gRPC", typedCaller((interceptors) => createGrpcTransport({ baseUrl: url, interceptors }))],
    ["gRPC-Web", typedCaller((interceptors) => createGrpcWebTransport({ ...h1, interceptors }))],
  ];
}

/** Posts to the JSON route and returns the raw text of the answer too. */
export async function postRest(url: string, call: ScenarioCall): Promise<{ statusCode: number; text: string }> {
  const query = new URLSearchParams({ user_id: call.userId, public_key: call.publicKey });
  if (call.privateKey !== undefined) query.set("private_key", call.privateKey);
  if (call.userSignature !== undefined) query.set("user_signature", call.userSignature);
  if (call.responseMode !== undefined) query.set("response_mode", call.responseMode);
  const target = `${url}/oauth/method/${encodeURIComponent(call.providerName)}/call?${query}`;
  const headers = { "content-type": "application/json", ...call.outerHeaders };
  const answer = await request(target, { method: "POST", headers, body: JSON.stringify(call.call) });
  return { statusCode: answer.statusCode, text: await answer.body.text() };
}

async function callRest(url: string, call: ScenarioCall): Promise<Row> {
  const { text } = await postRest(url, call);
  return rowOf(JSON.parse(text));
}

function typedCaller(transport: (interceptors: Interceptor[]) => Transport): Caller {
  return async ({ outerHeaders, ...call }) => {
    const client = createClient(RelayService, transport([]));
    const message = fromJsonString(CallRequestSchema, JSON.stringify(call));
    const response = await client.call(message, { headers: outerHeaders ?? {} });
    return rowOf(JSON.parse(toJsonString(CallResponseSchema, response)));
  };
}

function rowOf(envelope: { rows?: Row[] }): Row {
  const [row, ...more] = envelope.rows ?? [];
  if (row === undefined || more.length > 0) throw new Error(`not exactly one row: ${JSON.stringify(envelope)}`);
  return row;
}

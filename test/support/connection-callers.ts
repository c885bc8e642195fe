import { type DescMethodUnary, fromJsonString, type JsonObject, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { type Dispatcher, request } from "undici";
import { ErrorDetailSchema, RelayService } from "../../gen/relay/v1/relay_pb.js";

/** A method about connections. */
export type ConnectionMethod = "listConnections" | "deleteConnection" | "createConnectLink";

/** How a call of one ended: the response as ProtoJSON, or what it was refused with. */
export type ConnectionOutcome =
  | { readonly answer: JsonObject }
  | { readonly errorType: string; readonly message: string; readonly code: number };

/** Calls one over one protocol; `fields` is the request as ProtoJSON. */
export type ConnectionCaller = (
  method: ConnectionMethod,
  fields: JsonObject,
  headers?: Readonly<Record<string, string>>,
) => Promise<ConnectionOutcome>;

/** REST: `code` is the HTTP status. */
export function restCaller(url: string): ConnectionCaller {
  return async (method, { providerName, ...fields }, headers = {}) => {
    const query = new URLSearchParams(fields as Record<string, string>);
    const path = `${url}/oauth/connections`;
    const [target, options] = {
      listConnections: [`${path}?${query}`, { method: "GET" }],
      deleteConnection: [`${path}/${encodeURIComponent(String(providerName))}?${query}`, { method: "DELETE" }],
      createConnectLink: [
        `${url}/oauth/connect-links`,
        { method: "POST", body: JSON.stringify(providerName === undefined ? fields : { providerName, ...fields }) },
      ],
    }[method] as [string, { method: Dispatcher.HttpMethod; body?: string }];
    const answer = await request(target, { ...options, headers });
    const body = (await answer.body.json()) as JsonObject;
    if (answer.statusCode === 200) return { answer: body };
    const [row] = body["rows"] as Array<{ errorType: string; inernalError: string; statusCode: number }>;
    if (row?.statusCode !== answer.statusCode) throw new Error(`status ${answer.statusCode}: ${JSON.stringify(body)}`);
    return { errorType: row.errorType, message: row.inernalError, code: answer.statusCode };
  };
}

/** The typed protocols, all real clients; `code` is the RPC code. */
export function rpcCallers(url: string): ReadonlyArray<readonly [protocol: string, caller: ConnectionCaller]> {
  const h1 = { baseUrl: url, httpVersion: "1.1" } as const;
  const h2 = { baseUrl: url, httpVersion: "2" } as const;
  return [
    ["Connect JSON", rpcCaller(createConnectTransport({ ...h1, useBinaryFormat: false }))],
    ["Connect binary", rpcCaller(createConnectTransport({ ...h2, useBinaryFormat: true }))],
    ["gRPC", rpcCaller(createGrpcTransport({ baseUrl: url }))],
    ["gRPC-Web", rpcCaller(createGrpcWebTransport(h1))],
  ];
}

function rpcCaller(transport: Transport): ConnectionCaller {
  const client = createClient(RelayService, transport);
  return async (name, fields, headers = {}) => {
    const method: DescMethodUnary = RelayService.method[name];
    const message = fromJsonString(method.input, JSON.stringify(fields));
    try {
      const answer = await client[name](message as never, { headers: { ...headers } });
      return { answer: toJson(method.output, answer, { alwaysEmitImplicit: true }) as JsonObject };
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      const [detail] = error.findDetails(ErrorDetailSchema);
      if (detail === undefined) throw error;
      return { errorType: detail.errorType, message: error.rawMessage, code: error.code };
    }
  };
}

/** RPC code of each errorType that these methods answer with. */
export const RPC_CODES: Readonly<Record<string, Code>> = {
  CALL_FORMAT_ERROR: Code.InvalidArgument,
  INVALID_PUBLIC_KEY: Code.Unauthenticated,
  CALLER_NOT_ALLOWED: Code.PermissionDenied,
  INVALID_PROVIDER: Code.NotFound,
  INVALID_OAUTHID: Code.NotFound,
  PROVIDER_MISCONFIGURED: Code.FailedPrecondition,
};

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import {
  type CallerFields,
  type CallerOptions,
  callerFieldsOf,
  callerFrom,
  decideCaller,
  requireApplication,
  requireCallerIds,
} from "../../applications/caller.js";
import type { Budget, Reservation } from "../../call/budget.js";
import type { CallOrigin } from "../../call/call.js";
import { callerGone, isGone } from "../../call/outcome.js";
import { answerOriginPreflight, corsFieldsIfListed, type ListsOrigin } from "../../http/cors.js";
import type { PathHandler } from "../../http/dispatch.js";
import {
  answerPlain,
  clientNetworkOf,
  type HttpRequest,
  type HttpResponse,
  jsonFields,
  type ResponseSignal,
  readBody,
  watchCaller,
} from "../../http/exchange.js";
import { LARGE_BYTES } from "../../lib/chunks.js";
import { packageVersion } from "../../lib/process.js";
import { overloaded, RelayError } from "../../model/errors.js";
import { originOf } from "../rest/read-call.js";
import { type Agent, callTool, INSTRUCTIONS, type Message, readMessage, type ToolOptions, toolsFor } from "./tools.js";

/** Path of the MCP endpoint. */
const MCP_PATH = "/mcp";

/** What the MCP endpoint needs from the rest of the service. */
export interface McpHandlerOptions extends CallerOptions, ToolOptions {
  readonly listsOrigin: ListsOrigin;
  readonly budget: Budget;
  readonly clientAddress: (request: HttpRequest) => string;
  readonly maxRequestBytes: number;
  readonly deadlineMs: number;
}

/**
 * The Model Context Protocol over streamable HTTP (revision 2025-11-25, basic/transports), for the holder of a call
 * token. There are no sessions: each POST is one message, and any process can answer it.
 */
export function createMcpHandler(options: McpHandlerOptions): PathHandler {
  return (request, response, path) => {
    if (path !== MCP_PATH) return undefined;
    if (request.method === "POST") return answerPost(options, request, response);
    if (request.method === "OPTIONS") {
      return answerOriginPreflight(options, request, response, { methods: "POST", headers: "authorization" });
    }
    // Without sessions there is no stream to GET and no session to DELETE.
    answerPlain(response, 405, "Send a POST request.", { allow: "POST, OPTIONS" });
    return Promise.resolve();
  };
}

/** An answer: JSON, or an empty body for a notification. */
interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function answerPost(options: McpHandlerOptions, request: HttpRequest, response: HttpResponse): Promise<void> {
  const origin = originOf({ surface: "mcp" }, request, "");
  const fields = callerFieldsOf(request, options.clientAddress(request));
  const memory = options.budget.open(clientNetworkOf(fields.address));
  const signal = watchCaller(response, memory);
  const exchange = { request, fields, origin, memory, signal };
  const answer = await answerTo(options, exchange).catch((error: unknown) => refusalOf(options, exchange, error));
  const cors = await corsFieldsIfListed(options, request);
  if (response.destroyed || isGone(signal)) return;
  const head = { ...jsonFields(Buffer.byteLength(answer.body)), ...answer.headers, ...cors };
  if (answer.body === "") delete head["content-type"];
  response.writeHead(answer.status, head);
  response.end(answer.body);
}

/** One request with its caller and its memory. */
interface Exchange {
  readonly request: HttpRequest;
  readonly fields: CallerFields;
  readonly origin: CallOrigin;
  readonly memory: Reservation;
  readonly signal: ResponseSignal;
}

/** Rejects with RelayError for a caller that is not allowed, and for a body that is not a message. */
async function answerTo(options: McpHandlerOptions, exchange: Exchange): Promise<Answer> {
  const { request, fields, origin, memory, signal } = exchange;
  const { application, caller } = await requireAgent(options, fields);
  if (signal.aborted) throw isGone(signal) ? callerGone() : signal.reason;
  const body = await readBody(request, Math.min(options.maxRequestBytes, MAX_BODY_BYTES), memory, signal);
  if (!memory.begin() || !memory.belongTo(application.id)) throw overloaded();
  const deadline = origin.startedAt + options.deadlineMs;
  const agent = { ...origin, ...caller, fields, memory, signal, deadline };
  return answerMessage(options, request, readMessage(body.concat()), agent);
}

/** A refusal (RFC 6750 section 3); the body is a JSON-RPC error with no request id. */
function refusalOf({ relay }: McpHandlerOptions, { request, origin }: Exchange, error: unknown): Answer {
  const { errorType, statusCode, message } = relay.refuse(origin, error);
  const isOfToken = errorType === "CALLER_NOT_ALLOWED" && !(error instanceof PlaceRefusal);
  const status = isOfToken ? 401 : statusCode;
  const challenge = request.headers.authorization === undefined ? "Bearer" : 'Bearer error="invalid_token"';
  return {
    status,
    body: JSON.stringify({ jsonrpc: "2.0", error: { code: status === 400 ? -32600 : -32000, message }, id: null }),
    headers: status === 401 ? { "www-authenticate": challenge } : {},
  };
}

/** Far more than a model writes, and still read in one turn of the event loop. */
const MAX_BODY_BYTES = LARGE_BYTES;

/** Refusal of the origin or address, which another token would not change. The specification requires 403. */
class PlaceRefusal extends RelayError {}

/** Only the token names the caller. */
const NAMED = { publicKey: "", userId: "", privateKey: undefined, userSignature: undefined };

/** Identifies and checks the holder of the token. Rejects with RelayError, before anything else is done. */
async function requireAgent(options: McpHandlerOptions, fields: CallerFields) {
  const caller = callerFrom(fields, NAMED);
  const { callToken, privateKeys } = caller.proof;
  if (callToken === undefined || privateKeys.length > 0) throw noToken(privateKeys.length > 0);
  requireCallerIds(caller);
  const application = await requireApplication(options, caller);
  const decision = decideCaller(options, application, caller);
  if (decision.result === "allow") return { application, caller };
  const isPlace = decision.rule === "origin" || decision.rule === "address";
  throw new (isPlace ? PlaceRefusal : RelayError)("CALLER_NOT_ALLOWED", decision.message);
}

function noToken(isOther: boolean): RelayError {
  return new RelayError(
    "CALLER_NOT_ALLOWED",
    isOther
      ? "Only a call token is accepted here: an agent must not hold a private key or an operator's token. Send a call token, and nothing else, as Authorization: Bearer."
      : "Send a call token as Authorization: Bearer.",
  );
}

/**
 * Saves creating a validator for each message: the server sends no requests to clients whose answers need validating.
 */
const NO_VALIDATOR = {
  getValidator(): never {
    throw new Error("the server sends no requests to clients");
  },
};

/** The fields that the SDK reads; the token is not passed to it. */
const TRANSPORT_FIELDS = ["accept", "content-type", "mcp-protocol-version"] as const;

/** Answers one message with its own server and transport, as the SDK requires without sessions. */
async function answerMessage(
  options: McpHandlerOptions,
  { headers }: HttpRequest,
  { parsed, args }: Message,
  agent: Agent,
): Promise<Answer> {
  const server = new Server(
    { name: "provider-call-relay", version: packageVersion() },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS, jsonSchemaValidator: NO_VALIDATOR },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: toolsFor(agent) }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => callTool(options, agent, params.name, args));
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  const fields = TRANSPORT_FIELDS.flatMap((name) =>
    headers[name] === undefined ? [] : [[name, String(headers[name])]],
  );
  const asked = new Request(`http://relay${MCP_PATH}`, { method: "POST", headers: fields as [string, string][] });
  const answered = await transport.handleRequest(asked, { parsedBody: parsed });
  return { status: answered.status, body: await answered.text() };
}

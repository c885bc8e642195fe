import {
  create,
  type DescMessage,
  type DescMethod,
  fromJsonString,
  type MessageShape,
  toJsonString,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { RelayService } from "../../../gen/relay/v1/relay_pb.js";
import { type CallerFields, callerFieldsOf } from "../../applications/caller.js";
import type { Budget, Reservation } from "../../call/budget.js";
import { outcomeFromError } from "../../call/outcome.js";
import type { PathHandler } from "../../http/dispatch.js";
import {
  answerPlain,
  clientNetworkOf,
  type HttpRequest,
  type HttpResponse,
  jsonFields,
  readBody,
  watchCaller,
} from "../../http/exchange.js";
import { identityOf } from "../../http/identity.js";
import { formatError, overloaded } from "../../model/errors.js";
import type { ConnectionOperations } from "../rpc/connection-operations.js";
import { messageFaultFrom } from "../rpc/errors.js";
import { bodyFromOutcome, bytesFromBody } from "./envelope.js";
import { answerPreflight, type BrowserOrigins, corsFieldsFor } from "./preflight.js";
import { parseCallQuery, providerNameFrom, type Route, routeFromMethod } from "./read-call.js";

/** Message → message; rejects with RelayError. */
type Operation<Input extends DescMessage, Output extends DescMessage> = (
  request: MessageShape<Input>,
  caller: CallerFields,
) => Promise<MessageShape<Output>>;

/** What these routes need from the rest of the service. */
interface ConnectionsHandlerOptions extends BrowserOrigins {
  readonly operations: ConnectionOperations;
  readonly budget: Budget;
  readonly clientAddress: (request: HttpRequest) => string;
  readonly onFault: (where: string, error: unknown) => void;
}

/** A method with its route. */
interface Served {
  readonly route: Route;
  readonly answer: (exchange: MessageExchange) => Promise<string>;
}

/**
 * Serves the connection methods as JSON over HTTP, on the routes that the schema annotates. An answer is the ProtoJSON
 * of the response message; a refusal is an error row with the HTTP status of its reason.
 */
export function createConnectionsHandler(options: ConnectionsHandlerOptions): PathHandler {
  const { operations } = options;
  const { listConnections, deleteConnection, createConnectLink } = RelayService.method;
  const served = [
    serve(options, listConnections, operations.listConnections),
    serve(options, deleteConnection, operations.deleteConnection),
    serve(options, createConnectLink, operations.createConnectLink),
  ];
  return (request, response, path) => {
    const matching = served.flatMap((method) => {
      const variables = method.route.match(path);
      return variables === undefined ? [] : [{ ...method, variables }];
    });
    if (matching.length === 0) return undefined;
    const queryText = (request.url ?? "").slice(path.length + 1);
    return dispatch(options, matching, request, response, queryText);
  };
}

async function dispatch(
  options: ConnectionsHandlerOptions,
  matching: ReadonlyArray<Served & Pick<MessageExchange, "variables">>,
  request: HttpRequest,
  response: HttpResponse,
  queryText: string,
): Promise<void> {
  const [first] = matching;
  if (request.method === "OPTIONS" && first !== undefined) {
    return answerPreflight(options, first.route, request, response, queryText);
  }
  const method = matching.find(({ route }) => route.method === request.method);
  if (method === undefined) {
    const allow = [...matching.map(({ route }) => route.method), "OPTIONS"].join(", ");
    answerPlain(response, 405, `Send a ${first?.route.method} request.`, { allow });
    return;
  }
  const { route, variables } = method;
  const { status, body } = await outcomeOf(options, method, { request, response, variables, queryText });
  const cors = await corsFieldsFor(options.allowedOrigins, route, request, queryText);
  if (response.destroyed) return;
  response.writeHead(status, { ...jsonFields(body.length), ...cors });
  response.end(body);
}

async function outcomeOf(options: ConnectionsHandlerOptions, method: Served, exchange: MessageExchange) {
  try {
    return { status: 200, body: Buffer.from(await method.answer(exchange)) };
  } catch (error) {
    const outcome = outcomeFromError(identityOf(exchange.request).callId, error, options.onFault);
    return { status: outcome.statusCode, body: bytesFromBody(bodyFromOutcome(outcome, undefined)) };
  }
}

function serve<Input extends DescMessage, Output extends DescMessage>(
  options: ConnectionsHandlerOptions,
  method: DescMethod & { readonly input: Input; readonly output: Output },
  operate: Operation<Input, Output>,
): Served {
  const route = routeFromMethod(method);
  return {
    route,
    async answer(exchange) {
      const caller = callerFieldsOf(exchange.request, options.clientAddress(exchange.request));
      const memory = options.budget.open(clientNetworkOf(caller.address));
      const message = await messageFrom(memory, method.input, route, exchange);
      const answered = await operate(message, caller);
      return toJsonString(method.output, answered, { alwaysEmitImplicit: true });
    },
  };
}

/** A request on a route, with its path variables and query. */
interface MessageExchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** Raw values of the path's variables. */
  readonly variables: readonly string[];
  readonly queryText: string;
}

/** Many times the size of a connect link's request, the largest. */
const MAX_BODY_BYTES = 64 * 1024;

/**
 * Reads the message of a request: from the body of a POST; for other methods from the path variables and the query.
 * Rejects with RelayError CALL_FORMAT_ERROR, REQUEST_TOO_LARGE or OVERLOADED.
 */
async function messageFrom<Input extends DescMessage>(
  memory: Reservation,
  schema: Input,
  route: Route,
  { request, response, variables, queryText }: MessageExchange,
): Promise<MessageShape<Input>> {
  const signal = watchCaller(response, memory);
  const body = await readBody(request, MAX_BODY_BYTES, memory, signal);
  if (!memory.begin()) throw overloaded();
  if (route.method === "POST") return messageFromBody(schema, body.concat());
  const { fields } = parseCallQuery(queryText, route.queryFields);
  const values = Object.fromEntries([...fields, ...variables.map((raw) => ["provider_name", providerNameFrom(raw)])]);
  const message = create(schema);
  for (const field of schema.fields) reflect(schema, message).set(field, values[field.name] ?? "");
  return message;
}

function messageFromBody<Input extends DescMessage>(schema: Input, body: Buffer): MessageShape<Input> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(body);
    return fromJsonString(schema, text, { ignoreUnknownFields: false });
  } catch (error) {
    // Any other error means that the body is not UTF-8.
    const { fault } = messageFaultFrom((error as Error).message) ?? { fault: "it is not UTF-8 text" };
    throw formatError(`The body must be a JSON object with the fields of relay.v1.${schema.name}; ${fault}.`);
  }
}

import { create, type DescMessage, fromJsonString, type MessageShape } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { type Budget, overloaded } from "../../call/budget.js";
import { clientNetworkOf } from "../../http/client-network.js";
import type { HttpRequest, HttpResponse } from "../../http/exchange.js";
import { watchCaller } from "../../http/response-signal.js";
import { messageFaultFrom } from "../../json/message-fault.js";
import { formatError } from "../../model/errors.js";
import { parseCallQuery } from "./query.js";
import { readBody } from "./read-body.js";
import type { Route } from "./route.js";

/** A request of a route, with what its path and query hold. */
export interface MessageExchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** Raw values of the path's variables. */
  readonly variables: readonly string[];
  readonly queryText: string;
}

/** Of a connect link's request, many times over. */
const MAX_BODY_BYTES = 64 * 1024;

/** What reading a message needs from the rest of the service. */
export interface MessageReaderOptions {
  readonly budget: Budget;
  readonly clientAddress: (request: HttpRequest) => string;
}

/**
 * Reads the message of a request: the body of a POST; of other methods the path's variables and the query. Rejects with
 * RelayError CALL_FORMAT_ERROR, REQUEST_TOO_LARGE or OVERLOADED.
 */
export async function messageFrom<Input extends DescMessage>(
  { budget, clientAddress }: MessageReaderOptions,
  schema: Input,
  route: Route,
  { request, response, variables, queryText }: MessageExchange,
): Promise<MessageShape<Input>> {
  const memory = budget.open(clientNetworkOf(clientAddress(request)));
  const signal = watchCaller(response, memory);
  const body = await readBody(request, MAX_BODY_BYTES, memory, signal);
  if (!memory.begin()) throw overloaded();
  if (route.method === "POST") return messageFromBody(schema, body.concat());
  const { fields } = parseCallQuery(queryText, route.queryFields);
  const values = Object.fromEntries([...fields, ...variables.map((raw) => ["provider_name", decoded(raw)])]);
  const message = create(schema);
  for (const field of schema.fields) reflect(schema, message).set(field, values[field.name] ?? "");
  return message;
}

function decoded(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    // No provider's name: kept as it is, nothing matches it.
    return raw;
  }
}

function messageFromBody<Input extends DescMessage>(schema: Input, body: Buffer): MessageShape<Input> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(body);
    return fromJsonString(schema, text, { ignoreUnknownFields: false });
  } catch (error) {
    // What else goes wrong is that it is no UTF-8.
    const { fault } = messageFaultFrom((error as Error).message) ?? { fault: "it is not one JSON object" };
    throw formatError(`The body must be a JSON object of the fields of relay.v1.${schema.name}; ${fault}.`);
  }
}

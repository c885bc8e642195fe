import { validateJson } from "../json/json-validator.js";
import { usageError } from "./exit-error.js";

/** What `relay call` sends, whatever the protocol. */
export interface CallRequestText {
  readonly providerName: string;
  readonly publicKey: string;
  readonly userId: string;
  /** Hex HMAC of the user id; undefined for none. */
  readonly userSignature?: string | undefined;
  readonly url: string;
  readonly method: string;
  /** JSON text of an object. */
  readonly payload: string | undefined;
  /** Names and values in the order given; a name given again replaces the earlier value. */
  readonly headers: Readonly<Record<string, string>>;
}

/** As parsed from the command line; the payload has been read. */
export interface CallArguments {
  readonly app: string;
  readonly user: string;
  readonly userSignature?: string;
  readonly request?: string;
  readonly header?: readonly string[];
}

/**
 * Reads the arguments of a call. As with other HTTP clients the method is GET, or POST when there is a payload.
 * Throws a usage error that names the argument; the relay judges the rest.
 */
export function parseCallArguments(
  providerName: string,
  url: string,
  options: CallArguments,
  payload: string | undefined,
): CallRequestText {
  return {
    providerName,
    publicKey: options.app,
    userId: options.user,
    userSignature: options.userSignature,
    url,
    method: options.request ?? (payload === undefined ? "GET" : "POST"),
    payload: payload === undefined ? undefined : parsePayload(payload),
    headers: Object.fromEntries((options.header ?? []).map(parseHeader)),
  };
}

/** The body of the JSON route; the payload's own text, so that no number is rounded on the way. */
export function jsonBodyFrom({ url, method, payload, headers }: CallRequestText): string {
  const members = [`"url":${JSON.stringify(url)}`, `"method":${JSON.stringify(method)}`];
  if (payload !== undefined) members.push(`"payload":${payload}`);
  if (Object.keys(headers).length > 0) members.push(`"headers":${JSON.stringify(headers)}`);
  return `{${members.join(",")}}`;
}

/** The ProtoJSON of relay.v1.CallRequest, for command lines of other tools. */
export function messageJsonFrom(call: CallRequestText): string {
  const { providerName, userId, publicKey, userSignature } = call;
  const names = JSON.stringify({ providerName, userId, publicKey, userSignature });
  return `${names.slice(0, -1)},"call":${jsonBodyFrom(call)}}`;
}

function parsePayload(text: string): string {
  const isObject = text.trimStart().startsWith("{") && validateJson(Buffer.from(text)) === "valid";
  if (!isObject) throw usageError('-d must be one JSON object, such as \'{"title":"hello"}\'.');
  return text;
}

function parseHeader(text: string): readonly [name: string, value: string] {
  const colon = text.indexOf(":");
  const name = text.slice(0, colon).trim();
  if (colon < 1 || name === "") throw usageError(`-H must be 'name: value', such as 'accept: text/plain'.`);
  return [name, text.slice(colon + 1).trim()];
}

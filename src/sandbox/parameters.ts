import { OAuthError } from "./grants.js";
import type { SandboxRequest } from "./router.js";

/** A request parameter that cannot be used; the sandbox answers 400. The message never repeats the value. */
export class InvalidParameter extends Error {
  constructor(name: string, expected: string) {
    super(`${name} must be ${expected}`);
    this.name = "InvalidParameter";
  }
}

/** A range of integers with the value that stands for a missing parameter. */
interface IntegerRange {
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
}

/** Reads an integer from the query. Throws {@link InvalidParameter} when it is not one or out of range. */
export function integerParameter(query: URLSearchParams, name: string, range: IntegerRange): number {
  const text = query.get(name);
  return text === null ? range.fallback : parseInteger(text, name, range);
}

/** Parses decimal digits into an integer of the range. Throws {@link InvalidParameter}. */
export function parseInteger(text: string, name: string, { min, max }: Omit<IntegerRange, "fallback">): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) throw new InvalidParameter(name, `an integer from ${min} to ${max}`);
  return value;
}

/** Every value of the field `name` (lower-case) in a flat list of field lines, in the order received. */
export function fieldValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i] ?? "";
    if (candidate.length === name.length && candidate.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? "");
  }
  return values;
}

/** The media type of a message without parameters, lower-case; empty when none is named (RFC 9110 section 8.3.1). */
export function mediaType(rawHeaders: readonly string[]): string {
  const [value = ""] = fieldValues(rawHeaders, "content-type");
  return (value.split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** Whether a media type is JSON: `application/json`, `text/json` or a `+json` suffix (RFC 6839 section 3.1). */
export function isJsonType(type: string): boolean {
  return type === "application/json" || type === "text/json" || type.endsWith("+json");
}

/** Parameters of an OAuth request. */
export type Parameters = ReadonlyMap<string, string>;

/** Reads the content of a token or revocation request. Throws {@link OAuthError} `invalid_request`. */
export function parseForm({ rawHeaders, body }: SandboxRequest): Parameters {
  if (mediaType(rawHeaders) !== "application/x-www-form-urlencoded") {
    throw new OAuthError("invalid_request", "The content must be application/x-www-form-urlencoded.");
  }
  const parameters = parseParameters(new URLSearchParams(body.toString()));
  if (parameters === undefined) throw new OAuthError("invalid_request", "A parameter is repeated.");
  return parameters;
}

/**
 * https://www.rfc-editor.org/rfc/rfc6749#section-3.2: parameters without a value count as left out, and none may be
 * repeated: undefined when one is.
 */
export function parseParameters(pairs: URLSearchParams): Parameters | undefined {
  const parameters = new Map<string, string>();
  for (const [name, value] of pairs) {
    if (parameters.has(name)) return undefined;
    if (value !== "") parameters.set(name, value);
  }
  return parameters;
}

/** The value of a parameter that must be there. Throws {@link OAuthError} `invalid_request`. */
export function requiredParameter(parameters: Parameters, name: string): string {
  const value = parameters.get(name);
  if (value === undefined) throw new OAuthError("invalid_request", `The parameter ${name} is missing.`);
  return value;
}

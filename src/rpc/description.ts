import type { JsonObject } from "@bufbuild/protobuf";
import type { CallDescription as CallDescriptionMessage } from "../../gen/relay/v1/relay_pb.js";
import { formatError } from "../errors.js";
import { validateJson } from "../json/json-validator.js";
import { CALL_JSON_LIMITS, type CallDescription } from "../relay/call.js";

/**
 * Reads the call from its message.
 *
 * Fails with CALL_FORMAT_ERROR that names the field, in the words of the JSON route.
 */
export function descriptionFromMessage(message: CallDescriptionMessage | undefined): CallDescription {
  return {
    url: required(message?.url, "url"),
    method: required(message?.method, "method"),
    payload: jsonText(message?.payload, "payload"),
    headers: Object.entries(message?.headers ?? {}),
    queryString: jsonText(message?.queryString, "queryString"),
    body: message?.body.length ? message.body : undefined,
  };
}

/** proto3 cannot tell an empty string from a missing one. */
function required(value: string | undefined, field: string): string {
  if (value === undefined || value === "") throw formatError(`${field} is missing.`);
  return value;
}

/** A Struct as JSON text; undefined when it has no members. */
function jsonText(struct: JsonObject | undefined, field: string): Uint8Array | undefined {
  if (struct === undefined || Object.keys(struct).length === 0) return undefined;
  const text = Buffer.from(JSON.stringify(struct, (_key, value) => finite(value, field)));
  const verdict = validateJson(text, CALL_JSON_LIMITS);
  if (verdict === "valid") return text;
  throw formatError(`${field} has too many keys or is nested too deep.`);
}

/** JSON has no NaN and no Infinity, a double has. */
function finite(value: unknown, field: string): unknown {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  throw formatError(`${field} has a number that JSON cannot hold (NaN or infinite).`);
}

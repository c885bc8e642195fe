import { CALL_JSON_LIMITS, type CallDescription } from "../../call/call.js";
import { type JsonMember, kindAt, sliceMembers, textAt } from "../../json/json-slice.js";
import { validateJson } from "../../json/json-validator.js";
import { atOnce } from "../../lib/turns.js";
import { formatError } from "../../model/errors.js";
import { descriptionFromBody } from "../rest/description.js";

/** One message of JSON-RPC, for the SDK, and the arguments of a tool as they were written. */
export interface Message {
  readonly parsed: unknown;
  readonly args: Arguments;
}

/** The members of `params.arguments`; none where there are none. */
export interface Arguments {
  readonly json: Buffer;
  readonly members: ReadonlyMap<string, JsonMember>;
}

/** Reads a request body. Throws RelayError CALL_FORMAT_ERROR. */
export function readMessage(json: Buffer): Message {
  if (validateJson(json, CALL_JSON_LIMITS) !== "valid" || kindAt(json) !== "object") {
    throw formatError(
      "The body must be one JSON-RPC message: a JSON object of at most 64 levels and 10,000 members, and no batch.",
    );
  }
  const params = membersOf(json, { start: 0, end: json.length }).get("params");
  const args = params && membersOf(json, params).get("arguments");
  return { parsed: JSON.parse(json.toString()), args: { json, members: membersOf(json, args) } };
}

/** By name: of two of one name one reader takes the first and another one the last. None of what is no object. */
function membersOf(json: Buffer, range: Pick<JsonMember, "start" | "end"> | undefined): Map<string, JsonMember> {
  const members = range === undefined ? [] : sliceMembers(json, range.start, range.end);
  const byName = new Map(members.map((member) => [member.key, member]));
  if (byName.size === members.length) return byName;
  throw formatError("The message names a member twice. Send it once.");
}

/** The call that arguments describe, in the form of the JSON route with `provider` beside it. Throws CALL_FORMAT_ERROR. */
export function callFromArguments({ json, members }: Arguments): {
  readonly providerName: string;
  readonly description: CallDescription;
} {
  const provider = members.get("provider");
  if (provider === undefined) throw formatError("provider is missing. Name one that list_accounts shows.");
  if (kindAt(json, provider.start) !== "string") throw formatError("provider must be a string.");
  const others = [...members.values()].filter((member) => member !== provider);
  // The payload stays as the agent wrote it, byte for byte.
  const written = others.map(({ key, start, end }) => `${JSON.stringify(key)}:${json.toString("utf8", start, end)}`);
  const description = atOnce(descriptionFromBody(Buffer.from(`{${written.join(",")}}`)));
  return { providerName: textAt(json, provider), description };
}

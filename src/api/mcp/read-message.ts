import { CALL_JSON_LIMITS, type CallDescription } from "../../call/call.js";
import { type JsonMember, kindAt, sliceMembers, textAt } from "../../json/json-slice.js";
import { validateJson } from "../../json/json-validator.js";
import { atOnce } from "../../lib/turns.js";
import { formatError, type RelayError } from "../../model/errors.js";
import { descriptionFromBody } from "../rest/description.js";

/** One message of JSON-RPC, and the arguments of a tool as they were written. */
export interface Message {
  /** For the SDK; without the arguments. */
  readonly parsed: unknown;
  readonly args: Arguments;
}

/** The members of `params.arguments`; none where there are none. */
export interface Arguments {
  readonly json: Buffer;
  readonly members: ReadonlyMap<string, JsonMember>;
}

/** Of a message without its arguments: the SDK looks at each of them several times, and no message has a tenth. */
const ENVELOPE_LIMITS = { ...CALL_JSON_LIMITS, maxKeys: 500 } as const;
const NO_ARGUMENTS = Buffer.from("{}");

/** Reads a request body. Throws RelayError CALL_FORMAT_ERROR. */
export function readMessage(json: Buffer): Message {
  if (validateJson(json, CALL_JSON_LIMITS) !== "valid" || kindAt(json) !== "object") throw noMessage();
  const params = membersOf(json, { start: 0, end: json.length }).get("params");
  const args = params && membersOf(json, params).get("arguments");
  const envelope = args === undefined ? json : withoutArguments(json, args);
  if (validateJson(envelope, ENVELOPE_LIMITS) !== "valid") throw noMessage();
  return { parsed: JSON.parse(envelope.toString()), args: { json, members: membersOf(json, args) } };
}

/** What is no object stays, for the SDK to refuse. */
function withoutArguments(json: Buffer, { start, end }: JsonMember): Buffer {
  if (kindAt(json, start) !== "object") return json;
  return Buffer.concat([json.subarray(0, start), NO_ARGUMENTS, json.subarray(end)]);
}

function noMessage(): RelayError {
  return formatError(
    "The body must be one JSON-RPC message, and no batch: a JSON object of at most 64 levels and 10,000 members, 500 of them outside of the arguments.",
  );
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

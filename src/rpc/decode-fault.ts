/** What the JSON decoder of protobuf says in front of the part that quotes the message; the name is the schema's. */
const PLACE = /^cannot decode (?:(?:message|field|enum) )?[\w.]+ from JSON/;

/**
 * A key that is unknown and reads as the name of a field, in either spelling: words of letters. A token or a key of
 * random characters does not, and is not told.
 */
const UNKNOWN_NAME = /^: key "(?=.{1,40}")([a-z]+(?:_[a-z]+|[A-Z][a-z]+)*)" is unknown$/;

/** What follows it, and how to say so without a quotation. */
const FAULTS: ReadonlyArray<readonly [pattern: RegExp, text: string]> = [
  [/^: key ".*" is unknown$/s, "it has a field that is not in the schema"],
  [/^: duplicate (?:object|map) key "/, "an object in it has the same key twice"],
  [/^: set multiple times$/, "it is given more than once"],
  [/^: maximum recursion depth/, "it is nested too deep"],
  [/JSON/, "it is not one JSON object"],
];

/** What the decoder of the binary encoding says first; it quotes nothing. */
export const BINARY_FAULT = "parse binary: ";

/** Texts of connect that quote nothing but numbers. */
const PLAIN = [
  new RegExp(`^${BINARY_FAULT}.*$`, "s"),
  /^protocol error: invalid (?:connect|grpc) timeout value/,
  /^protocol error: promised \d+ bytes, received \d+$/,
  /^protocol error: incomplete envelope$/,
  /^unexpected end flag$/,
  /^timeout \d+ms must be <= \d+$/,
  /^decompression failed$/,
];

/**
 * The text of an error about a message that cannot be decoded, without what it quotes of it (threats J14), but for the
 * name of a field that is not in the schema. Pure.
 */
export function textFromDecodeFault(message: string): string {
  const place = PLACE.exec(message)?.[0];
  if (place !== undefined) return `${place}: ${faultFrom(message.slice(place.length))}`;
  return PLAIN.map((pattern) => pattern.exec(message)?.[0]).find(Boolean) ?? "The message cannot be decoded.";
}

function faultFrom(rest: string): string {
  const name = UNKNOWN_NAME.exec(rest)?.[1];
  if (name !== undefined) return `it has the field ${name}, which is not in the schema`;
  return FAULTS.find(([pattern]) => pattern.test(rest))?.[1] ?? "it has a value of the wrong type";
}

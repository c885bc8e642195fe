/** What the JSON decoder of protobuf says in front of the part that quotes the message; the name is the schema's. */
const PLACE = /^cannot decode (?:(?:message|field|enum) )?[\w.]+ from JSON/;

/**
 * A key that is unknown and reads as the name of a field, in either spelling: words of letters. A token or a key of
 * random characters does not, and is not told.
 */
const UNKNOWN_NAME = /^: key "(?=.{1,40}")([a-z]+(?:_[a-z]+|[A-Z][a-z]+)*)" is unknown$/;

/** How V8 ends what it says of a text that is no JSON; a value that is quoted ends with a quote. */
const NO_JSON =
  / (?:is not valid JSON|end of JSON input|(?:in|after) JSON at position \d+(?: \(line \d+ column \d+\))?)$/;

/** What follows it, and how to say so without a quotation. */
const FAULTS: ReadonlyArray<readonly [pattern: RegExp, text: string]> = [
  [/^: key ".*" is unknown$/s, "it has a field that is not in the schema"],
  [/^: duplicate (?:object|map) key "/, "an object in it has the same key twice"],
  [/^: set multiple times$/, "it is given more than once"],
  [/^: maximum recursion depth/, "it is nested too deep"],
  [NO_JSON, "it is not one JSON object"],
];

/** What is wrong with a message in JSON, without a quotation. */
export interface MessageFault {
  /** Which message, field or enum, by the schema's name. */
  readonly place: string;
  readonly fault: string;
}

/**
 * Reads the text of an error of protobuf's JSON decoder, and leaves out what it quotes of the message (threats J14), but
 * for the name of a field that is not in the schema. Undefined for any other text. Pure.
 */
export function messageFaultFrom(text: string): MessageFault | undefined {
  const place = PLACE.exec(text)?.[0];
  return place === undefined ? undefined : { place, fault: faultFrom(text.slice(place.length)) };
}

function faultFrom(rest: string): string {
  const name = UNKNOWN_NAME.exec(rest)?.[1];
  if (name !== undefined) return `it has the field ${name}, which is not in the schema`;
  return FAULTS.find(([pattern]) => pattern.test(rest))?.[1] ?? "it has a value of the wrong type";
}

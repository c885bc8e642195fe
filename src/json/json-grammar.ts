// The grammar of RFC 8259 as a state machine over bytes: what may follow what.
//
// A state is the stateOf of its row in one table, so that a step is `transitions[state + byte]`. A machine of finite
// states cannot count brackets: the states below `firstPlain` ask the validator to do something after the step. Values
// in an array, in an object and in neither have states of their own, so that a comma needs no look at the stack.

/** Entries of a state: one per byte. */
const ROW = 256;

/** Where a value stands; it decides what may follow the value. */
const PLACES = ["top", "array", "object"] as const;
type Place = (typeof PLACES)[number];

/** States in which whitespace may stand; each has a twin that is entered by a line feed. */
const GAPS = [
  ...PLACES.flatMap((place) => [`value-${place}`, `after-${place}`]),
  "first-element",
  "first-key",
  "key",
  "colon",
];
const NEWLINES = GAPS.map((gap) => `newline-${gap}`);
const STRINGS = ["string-key", ...PLACES.map((place) => `string-${place}`)];

/** Order matters: the validator compares with the first state of each group. */
const SPECIAL = ["error", "close", "open-array", "open-object", ...NEWLINES, "open-key", ...STRINGS];
const states = new Map(SPECIAL.map((name, index) => [name, index * ROW]));

const WHITESPACE = " \t\r";
const DIGITS = "0123456789";
const HEX_DIGITS = "0123456789abcdefABCDEF";

/** Next state by state and byte. What is not filled in leads to state 0, which is `error`. */
const table = new Uint16Array(128 * ROW);

/** The state of this name: its row in the table. A name is a state from its first use on. */
function stateOf(name: string): number {
  const known = states.get(name);
  if (known !== undefined) return known;
  const state = states.size * ROW;
  states.set(name, state);
  return state;
}

function on(state: string, characters: string, next: string): void {
  for (const character of characters) table[stateOf(state) + character.charCodeAt(0)] = stateOf(next);
}

function gap(state: string): void {
  on(state, WHITESPACE, state);
  on(state, "\n", `newline-${state}`);
}

/** RFC 8259 section 7. Bytes from 0x80 pass: the caller checks UTF-8. */
function string(place: Place | "key", next: string): void {
  const state = `string-${place}`;
  table.fill(stateOf(state), stateOf(state) + 0x20, stateOf(state) + ROW);
  on(state, '"', next);
  on(state, "\\", `escape-${place}`);
  on(`escape-${place}`, '"\\/bfnrt', state);
  on(`escape-${place}`, "u", `hex1-${place}`);
  for (const digit of [1, 2, 3]) on(`hex${digit}-${place}`, HEX_DIGITS, `hex${digit + 1}-${place}`);
  on(`hex4-${place}`, HEX_DIGITS, state);
}

/** RFC 8259 section 6. */
function number(place: Place): void {
  on(`minus-${place}`, "0", `zero-${place}`);
  on(`minus-${place}`, "123456789", `integer-${place}`);
  on(`integer-${place}`, DIGITS, `integer-${place}`);
  for (const state of ["zero", "integer"]) on(`${state}-${place}`, ".", `point-${place}`);
  for (const state of ["point", "fraction"]) on(`${state}-${place}`, DIGITS, `fraction-${place}`);
  for (const state of ["zero", "integer", "fraction"]) on(`${state}-${place}`, "eE", `exponent-${place}`);
  on(`exponent-${place}`, "+-", `sign-${place}`);
  for (const state of ["exponent", "sign", "power"]) on(`${state}-${place}`, DIGITS, `power-${place}`);
  for (const state of ["zero", "integer", "fraction", "power"]) after(`${state}-${place}`, place);
}

function literal(word: string, place: Place): void {
  for (let length = 1; length < word.length; length++) {
    const next = length + 1 === word.length ? `after-${place}` : `${word.slice(0, length + 1)}-${place}`;
    on(`${word.slice(0, length)}-${place}`, word.charAt(length), next);
  }
}

/** `state` may begin a value. */
function value(state: string, place: Place): void {
  gap(state);
  on(state, '"', `string-${place}`);
  on(state, "{", "open-object");
  on(state, "[", "open-array");
  on(state, "-", `minus-${place}`);
  on(state, "0", `zero-${place}`);
  on(state, "123456789", `integer-${place}`);
  for (const first of "tfn") on(state, first, `${first}-${place}`);
}

/** A value may have ended in `state`. */
function after(state: string, place: Place): void {
  on(state, WHITESPACE, `after-${place}`);
  on(state, "\n", `newline-after-${place}`);
  if (place === "array") on(state, ",", "value-array");
  if (place === "object") on(state, ",", "key");
  if (place !== "top") on(state, place === "array" ? "]" : "}", "close");
}

for (const place of PLACES) {
  value(`value-${place}`, place);
  after(`after-${place}`, place);
  string(place, `after-${place}`);
  number(place);
  for (const word of ["true", "false", "null"]) literal(word, place);
}
value("first-element", "array");
on("first-element", "]", "close");
for (const state of ["first-key", "key"]) {
  gap(state);
  on(state, '"', "open-key");
}
on("first-key", "}", "close");
string("key", "colon");
gap("colon");
on("colon", ":", "value-object");

/** The machine; every member but the first and the last two is a state. */
export const JSON_GRAMMAR = {
  /** Next state by `state + byte`. */
  transitions: table.slice(0, states.size * ROW),

  /** An array or object was closed. The row of state 0, which means that the text is not JSON, is all zeros. */
  close: stateOf("close"),
  /** An array was opened. */
  openArray: stateOf("open-array"),
  /** An object was opened. */
  openObject: stateOf("open-object"),
  /** First of the states of a line feed, after which indentation may follow; see `gapByNewline`. */
  firstNewline: stateOf(NEWLINES[0] as string),
  /** The quote that begins a member's name was read. */
  openKey: stateOf("open-key"),
  /** Inside a member's name. From here to `firstPlain`: inside a string. */
  inKey: stateOf("string-key"),
  /** From here on a state asks nothing of the validator. */
  firstPlain: SPECIAL.length * ROW,

  /** Where a text begins. */
  start: stateOf("value-top"),
  /** After `[`. */
  firstElement: stateOf("first-element"),
  /** After `{`. */
  firstKey: stateOf("first-key"),
  /** After the whole value. */
  afterTop: stateOf("after-top"),
  /** After a value in an array. */
  afterElement: stateOf("after-array"),
  /** After a member's value in an object. */
  afterMember: stateOf("after-object"),

  /** The state that a line feed state stands for, by `(state - firstNewline) / 256`. */
  gapByNewline: Uint16Array.from(GAPS.map(stateOf)),
  /** States in which a text may end. */
  complete: new Set(["after", "zero", "integer", "fraction", "power"].map((state) => stateOf(`${state}-top`))),
} as const;

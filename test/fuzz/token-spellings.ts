import { below, createRandom, pick, type Random } from "../support/random.js";

/** What a reader of an answer may do to a text. */
type Undo = (text: string) => string;

/** A token in a text, and how a reader comes to it again: each step undoes what the one before gave. */
export interface SpelledToken {
  readonly text: string;
  readonly steps: readonly Undo[];
}

/** What stands around a token: also what an escape could begin with, and what ends one. */
const PLAIN = ["", " ", "a", "t=", '"', "\n", "x-", "é", "中"];
const AROUND = [...PLAIN, "\\", "%", "%4", "%%3", "\\u00", "\\u004", "100%", "\\\\"];

/** Spells a token in one of the ways that JSON parsers, form decoders and base64 decoders undo, the same for a seed. */
export function spelledToken(token: string, seed: number): SpelledToken {
  const random = createRandom(seed);
  let text = below(random, 2) === 0 ? token : inBase64(random, token);
  const steps: Undo[] = [];
  const most = below(random, 3);
  while (steps.length < most) {
    const [spell, undo] = pick(
      random,
      LAYERS.filter(([, { length }]) => steps.length + length <= most),
    );
    text = spell(random, pick(random, PLAIN) + text + pick(random, PLAIN));
    steps.unshift(...undo);
  }
  return { text: pick(random, AROUND) + text + pick(random, AROUND), steps };
}

/** What a reader sees who undoes nothing, the first step, the first two, and so on; and base64 in each, at any place. */
export function viewsOf(text: string, steps: readonly Undo[]): string[] {
  const views = [text];
  for (const undo of steps) views.push(undo(views.at(-1) as string));
  const once = views.flatMap(fromBase64);
  return [...views, ...once, ...once.flatMap(fromBase64)];
}

/** Escapes of JSON that are none are left: so a text is read wherever it is cut. */
export const undoJson: Undo = (text) =>
  text.replace(/\\(?:u([0-9A-Fa-f]{4})|(["\\/bfnrt]))/g, (written) => JSON.parse(`"${written}"`));

/** Characters of two bytes and more are none of a token. */
export const undoPercent: Undo = (text) =>
  text.replace(/%([0-9A-Fa-f]{2})/g, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)));

type Layer = readonly [spell: (random: Random, text: string) => string, undo: readonly Undo[]];

const LAYERS: readonly Layer[] = [
  [(random, text) => eachOf(text, (one) => jsonOf(random, one)), [undoJson]],
  [(random, text) => eachOf(text, (one) => percentOf(random, one)), [undoPercent]],
  // A form in JSON, and JSON in a form, of which only some letters are spelled so.
  [
    (random, text) =>
      eachOf(
        eachOf(text, (one) => percentOf(random, one)),
        (one) => jsonOf(random, one),
      ),
    [undoJson, undoPercent],
  ],
  [
    (random, text) =>
      eachOf(
        eachOf(text, (one) => jsonOf(random, one)),
        (one) => percentOf(random, one),
      ),
    [undoPercent, undoJson],
  ],
];

function eachOf(text: string, spell: (one: string) => string): string {
  return Array.from({ length: text.length }, (_, at) => spell(text[at] as string)).join("");
}

function jsonOf(random: Random, one: string): string {
  const written = JSON.stringify(one).slice(1, -1);
  if (written === one && below(random, 3) > 0) return one === "/" && below(random, 2) === 0 ? "\\/" : one;
  return below(random, 2) === 0 && written !== one ? written : `\\u${hexOf(random, one, 4)}`;
}

function percentOf(random: Random, one: string): string {
  if (one !== "%" && below(random, 3) > 0) return one;
  return one.charCodeAt(0) < 0x80 ? `%${hexOf(random, one, 2)}` : one;
}

function hexOf(random: Random, one: string, digits: number): string {
  const hex = one.charCodeAt(0).toString(16).padStart(digits, "0");
  return eachOf(hex, (digit) => (below(random, 2) === 0 ? digit.toUpperCase() : digit));
}

/** At any alignment, in either alphabet, in lines or not, and perhaps once more. */
function inBase64(random: Random, token: string): string {
  const lead = (length: number) => "x".repeat(below(random, length));
  const written = pick(random, [token, token.replaceAll("/", "\\/"), encodeURIComponent(token)]);
  const encoding = below(random, 2) === 0 ? "base64" : "base64url";
  if (below(random, 4) === 0) {
    const inner = Buffer.from(`${lead(4)}${token}${lead(4)}`).toString("base64");
    return Buffer.from(`${lead(4)}${inner}${lead(4)}`).toString(encoding);
  }
  const encoded = Buffer.from(`${lead(60)}${written}${lead(60)}`).toString(encoding);
  if (below(random, 2) === 0) return encoded;
  const width = pick(random, [2, 3, 4, 10, 64, 76]);
  return (encoded.match(new RegExp(`.{1,${width}}`, "g")) ?? []).join(pick(random, ["\n", "\r\n", "\n  ", "\r\n\t"]));
}

/** What the parts of a text are in base64, from each of the places where one may begin. */
function fromBase64(text: string): string[] {
  const parts = text.replace(/[\r\n][ \t\r\n]*/g, "").match(/[\w+/-]{11,}/g) ?? [];
  return parts.flatMap((part) =>
    [0, 1, 2, 3].map((from) => Buffer.from(part.slice(from), "base64").toString("latin1")),
  );
}

import { bufferOf } from "../lib/chunks.js";
import { type Automaton, createAutomaton } from "./automaton.js";
import { createPieceFilter } from "./piece-filter.js";
import { createStreamRedactor, type StreamRedactor } from "./redact-stream.js";
import { spellingsOf } from "./spellings.js";

/** Takes secrets out of what a provider sent back. */
export interface Redactor {
  /** Returns the same bytes when nothing was found. */
  bytes(input: Buffer): Buffer;
  text(input: string): string;
  /** Does with the pieces of a body what `bytes()` does with the whole. */
  stream(): StreamRedactor;
  /** How many steps its searches have taken so far, but for the filter: linear in what was searched, whatever it was. */
  looks(): number;
}

/**
 * Searches for the given secrets in every spelling that a JSON parser, a form decoder or a base64 decoder undoes, mixed or
 * one around the other (threats L01, L02; `spellingsOf()`). A provider that transforms a token in another way cannot be
 * found out; the caller's own provider already has the token, so what this stops is an ordinary echo.
 *
 * Only a secret as a whole is found: to mask parts would tell a caller, who may have text of his own echoed, whether a
 * guess is a part of it.
 */
export function createRedactor(secrets: readonly string[]): Redactor {
  const spellings = secrets.map(spellingsOf);
  const texts = spellings.flatMap(({ whole }) => whole);
  if (texts.length === 0) return NOTHING_TO_FIND;
  const filter = createPieceFilter(texts);
  let made: Automaton | undefined;
  // Most answers are told to have no secret without it.
  const automaton = () => {
    made ??= createAutomaton([...texts, ...spellings.flatMap(({ rests }) => rests)]);
    return made;
  };
  const redactor: Redactor = {
    bytes(input) {
      const first = filter.firstIn(input);
      if (first === -1) return input;
      const stream = redactor.stream();
      const parts = [input.subarray(0, first), ...stream.push(input.subarray(first)), ...stream.end()];
      return stream.hasFound ? Buffer.concat(parts) : input;
    },
    text(input) {
      if (!filter.mayBeInText(input)) return input;
      const bytes = Buffer.from(input);
      const clean = redactor.bytes(bytes);
      return clean === bytes ? input : clean.toString();
    },
    stream: () => createStreamRedactor(automaton(), filter),
    looks: () => made?.looks() ?? 0,
  };
  return redactor;
}

const NOTHING_TO_FIND: Redactor = {
  bytes: (input) => input,
  text: (input) => input,
  stream: () => ({ push: (piece) => (piece.length === 0 ? [] : [bufferOf(piece)]), end: () => [], hasFound: false }),
  looks: () => 0,
};

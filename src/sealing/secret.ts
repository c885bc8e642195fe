import { inspect } from "node:util";

const REDACTED = "[redacted]";

/**
 * A token or key in the clear. It prints, logs and serialises as `[redacted]`; only `reveal()` gives the text.
 *
 * A class although it has no `close()`: a private field is the one place that neither `util.inspect` with
 * `showHidden`, `JSON.stringify` nor a structured clone can read.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The text itself; for the place that sends it, nothing else. */
  reveal(): string {
    return this.#value;
  }

  toJSON(): string {
    return REDACTED;
  }

  toString(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}

/** The place in a list that comes in pages (AIP-158). */
export interface Pages {
  /** Asks for the page that is shown; empty for the first. */
  readonly token: string;
  /** From 1 on. */
  readonly number: number;
  readonly hasNext: boolean;
  /** What the answer for this page said of the next one. */
  noteNext(token: string | undefined): void;
  forward(): void;
  back(): void;
  /** To the first page, of another list. */
  reset(): void;
}

/** Starts at the first page. A token leads forward only, so those of the pages before are kept. */
export function createPages(): Pages {
  let tokens = [""];
  let next = "";
  return {
    get token() {
      return tokens.at(-1) ?? "";
    },
    get number() {
      return tokens.length;
    },
    get hasNext() {
      return next !== "";
    },
    noteNext: (token) => {
      next = token ?? "";
    },
    forward() {
      if (next !== "") tokens.push(next);
      next = "";
    },
    back() {
      if (tokens.length > 1) tokens.pop();
    },
    reset() {
      tokens = [""];
      next = "";
    },
  };
}

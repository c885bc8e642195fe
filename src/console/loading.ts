/** Something that is asked for: the last answer, and how the last question went. */
export interface Loading<Value> {
  readonly value: Value | undefined;
  readonly isBusy: boolean;
  /** Why the last question failed; undefined when it did not. */
  readonly problem: string | undefined;
  /** Path of the field that the API names as wrong; undefined when it names none. */
  readonly field: string | undefined;
}

/** The most that a page of the API has. */
const MAX_PAGE_SIZE = 500;
const NOTHING: Loading<never> = { value: undefined, isBusy: false, problem: undefined, field: undefined };

/** What asks. */
export interface Loader<Value> extends Loading<Value> {
  /** Only the last question counts, also when answers overtake each other. Never rejects. */
  load(ask: () => Promise<Value>): Promise<void>;
  /** Forgets the answer, also one that is still on its way. */
  clear(): void;
}

/** @param onChange called for each change. */
export function createLoader<Value>(onChange: () => void): Loader<Value> {
  let state: Loading<Value> = NOTHING;
  let last = 0;
  const set = (next: Partial<Loading<Value>>) => {
    state = { ...state, ...next };
    onChange();
  };
  return {
    get value() {
      return state.value;
    },
    get isBusy() {
      return state.isBusy;
    },
    get problem() {
      return state.problem;
    },
    get field() {
      return state.field;
    },
    clear() {
      last += 1;
      set(NOTHING);
    },
    async load(ask) {
      last += 1;
      const own = last;
      set({ isBusy: true });
      try {
        const value = await ask();
        if (own === last) set({ value, isBusy: false, problem: undefined, field: undefined });
      } catch (error) {
        if (own === last) set({ isBusy: false, problem: textFrom(error), field: fieldOf(error) });
      }
    },
  };
}

function textFrom(error: unknown): string {
  return error instanceof ApiError ? error.message : "The console has a fault. Reload the page.";
}

function fieldOf(error: unknown): string | undefined {
  return error instanceof ApiError ? error.field : undefined;
}

/** A method of the administration API failed. `message` is for people. */
export class ApiError extends Error {
  /** Code of the Connect protocol, such as `permission_denied`. */
  readonly code: string;
  /** Path of the field that is wrong, such as `application.display_name`; undefined when none is named. */
  readonly field: string | undefined;

  constructor(code: string, message: string, field?: string) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.field = field;
  }
}

/** Asks for a whole list, page after page (AIP-158). Rejects as `ask` does. */
export async function allPages<Page extends { readonly nextPageToken?: string }>(
  ask: (page: { readonly pageSize: number; readonly pageToken: string }) => Promise<Page>,
): Promise<readonly Page[]> {
  const pages: Page[] = [];
  do {
    pages.push(await ask({ pageSize: MAX_PAGE_SIZE, pageToken: pages.at(-1)?.nextPageToken ?? "" }));
  } while (pages.at(-1)?.nextPageToken);
  return pages;
}

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

/** State of a request: the last answer, and whether the last request is running or has failed. */
export interface Loading<Value> {
  readonly value: Value | undefined;
  readonly isBusy: boolean;
  /** Why the last request failed; undefined when it did not. */
  readonly problem: string | undefined;
  /** Path of the field that the API names as wrong; undefined when it names none. */
  readonly field: string | undefined;
}

/** The largest page size of the API. */
const MAX_PAGE_SIZE = 500;
const NOTHING: Loading<never> = { value: undefined, isBusy: false, problem: undefined, field: undefined };

/** Shown for any error but the API's. */
const FAULT = { message: "The console has a fault. Reload the page.", field: undefined };

/** Runs requests and keeps their state. */
export interface Loader<Value> extends Loading<Value> {
  /** Only the last request counts, even when answers arrive out of order. Never rejects. */
  load(ask: () => Promise<Value>): Promise<void>;
  /** Discards the answer, including one that has not arrived yet. */
  clear(): void;
}

/** @param onChange called after each change of state. */
export function createLoader<Value>(onChange: () => void): Loader<Value> {
  let last = 0;
  const set = (next: Partial<Loading<Value>>) => {
    Object.assign(loader, next);
    onChange();
  };
  const loader: Loader<Value> = {
    ...NOTHING,
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
        if (own === last) set({ ...NOTHING, value });
      } catch (error) {
        const { message: problem, field } = error instanceof ApiError ? error : FAULT;
        if (own === last) set({ isBusy: false, problem, field });
      }
    },
  };
  return loader;
}

/** A call of the administration API failed. `message` is shown to the user. */
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

/** Fetches a whole list, page by page (AIP-158). Rejects as `ask` does. */
export async function allPages<Page extends { readonly nextPageToken?: string }>(
  ask: (page: { readonly pageSize: number; readonly pageToken: string }) => Promise<Page>,
): Promise<readonly Page[]> {
  const pages: Page[] = [];
  do {
    pages.push(await ask({ pageSize: MAX_PAGE_SIZE, pageToken: pages.at(-1)?.nextPageToken ?? "" }));
  } while (pages.at(-1)?.nextPageToken);
  return pages;
}

/** Position in a paginated list (AIP-158). */
export interface Pages {
  /** Page token of the current page; empty for the first. */
  readonly token: string;
  /** Page number, starting at 1. */
  readonly number: number;
  readonly hasNext: boolean;
  /** Stores the `nextPageToken` from the answer for this page. */
  noteNext(token: string | undefined): void;
  forward(): void;
  back(): void;
  /** Back to the first page, for a new list. */
  reset(): void;
}

/** Starts at the first page. Page tokens lead only forward, so the earlier ones are kept for going back. */
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

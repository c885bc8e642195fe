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
  /**
   * Only the last request counts, even when answers arrive out of order. Resolves to whether this one still does. Never
   * rejects.
   *
   * @param ask told whether its answer still counts, so that one of many requests need not make them all.
   */
  load(ask: (isWanted: () => boolean) => Promise<Value>): Promise<boolean>;
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
        const value = await ask(() => own === last);
        if (own === last) set({ ...NOTHING, value });
      } catch (error) {
        const { message: problem, field } = error instanceof ApiError ? error : FAULT;
        if (own === last) set({ isBusy: false, problem, field });
      }
      return own === last;
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

/** Handles the error of a request for something that may not exist. Throws any other error. */
export function undefinedIfMissing(error: unknown): undefined {
  if (error instanceof ApiError && error.code === "not_found") return undefined;
  throw error;
}

const ASK_AGAIN_MS = 1000;

/** Asks once a second until an answer is enough, for so many times. Resolves to the last answer; rejects as `ask` does. */
export async function askUntil<Answer>(
  times: number,
  ask: () => Promise<Answer>,
  isEnough: (answer: Answer) => boolean,
): Promise<Answer> {
  const answer = await ask();
  if (times <= 1 || isEnough(answer)) return answer;
  await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
  return askUntil(times - 1, ask, isEnough);
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

/** A page of a list, and how it was reached. */
type Reached<Page> = Page & {
  /** Page tokens from the first page, whose token is empty, to this one; they lead only forward (AIP-158). */
  readonly tokens: readonly string[];
};

/** A list of which one page is shown. After a failure that is still the last page that could be had. */
export interface PagedList<Page> extends Loader<Reached<Page>> {
  /** Loads the first page. */
  open(): Promise<unknown>;
  reload(): Promise<unknown>;
  back(): Promise<unknown>;
  forward(): Promise<unknown>;
}

/**
 * @param onChange called after each change of state.
 * @param ask fetches the page with this token; see {@link Loader}.
 */
export function createPagedList<Page extends { readonly nextPageToken?: string }>(
  onChange: () => void,
  ask: (pageToken: string, isWanted: () => boolean) => Promise<Page>,
): PagedList<Page> {
  const found = createLoader<Reached<Page>>(onChange);
  const tokens = () => found.value?.tokens ?? [""];
  const load = (to: readonly string[]) =>
    found.load(async (isWanted) => ({ ...(await ask(to.at(-1) ?? "", isWanted)), tokens: to }));
  return Object.assign(found, {
    open: () => load([""]),
    reload: () => load(tokens()),
    back: () => load(tokens().slice(0, -1)),
    forward: () => load([...tokens(), found.value?.nextPageToken ?? ""]),
  });
}

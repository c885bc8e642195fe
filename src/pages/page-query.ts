import { formatError, RelayError } from "../model/errors.js";
import { MAX_PROVIDERS } from "../oauth/connect-link.js";
import type { VisitQuery } from "../oauth/visit.js";

const MAX_VALUE_LENGTH = 4096;

/** Parameters of a page's address or form, each at most once. */
export interface PageQuery {
  /** Undefined when it is missing or empty. Throws RelayError CALL_FORMAT_ERROR when it stands twice, is too long or no UTF-8. */
  get(name: string): string | undefined;
  /** Those among `names` that are there. */
  pick(names: readonly string[]): ReadonlyMap<string, string>;
}

/**
 * Reads a query or a form. A private key in it is refused: a browser's history and every log on the way would have it.
 * Throws RelayError CALL_FORMAT_ERROR or CALLER_NOT_ALLOWED.
 */
export function parsePageQuery(text: string): PageQuery {
  // Whatever a client sends as bytes that are no ASCII, nobody knows in which charset.
  if (/[^\x21-\x7e]/.test(text)) throw formatError("The address holds characters that must be percent-encoded.");
  const parameters = new URLSearchParams(text);
  if (parameters.getAll("private_key").some((value) => value !== "")) throw privateKeyShown();
  const get = (name: string): string | undefined => {
    const values = parameters.getAll(name);
    if (values.length > 1) throw formatError(`${name} is given more than once. Send it once.`);
    const [value = ""] = values;
    // What bytes that are no UTF-8 become: two different ids would be the same.
    if (value.includes("\ufffd")) throw formatError(`${name} is not correctly percent-encoded. Encode it as UTF-8.`);
    if (value.length > MAX_VALUE_LENGTH) throw formatError(`${name} is longer than ${MAX_VALUE_LENGTH} characters.`);
    return value === "" ? undefined : value;
  };
  return {
    get,
    pick: (names) =>
      new Map(
        names.flatMap((name) => {
          const value = get(name);
          return value === undefined ? [] : [[name, value] as const];
        }),
      ),
  };
}

/** What an application's own address says of the visit. Throws RelayError CALL_FORMAT_ERROR. */
export function visitQueryFrom(query: PageQuery, address: string, isPage: boolean): VisitQuery {
  return {
    publicKey: query.get("public_key") ?? "",
    userId: query.get("user_id") ?? "",
    // A browser that is sent here names no origin; one that does is not what this page is for.
    proof: { privateKeys: [], userSignature: query.get("user_signature"), origin: undefined, address },
    providers: providersFrom(query.get("providers")),
    redirectUri: query.get("redirect_uri"),
    scope: query.get("scope"),
    isPage,
  };
}

function providersFrom(text = ""): readonly string[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.length > MAX_PROVIDERS) throw formatError(`providers names more than ${MAX_PROVIDERS}.`);
  return names.filter((name) => name !== "");
}

function privateKeyShown(): RelayError {
  return new RelayError(
    "CALLER_NOT_ALLOWED",
    "A private key must not be in a browser. Make a connect link with it (POST /oauth/connect-links) and send the browser there.",
  );
}

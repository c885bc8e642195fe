import { timingSafeEqual } from "node:crypto";
import { clientNetworkOf, type HttpRequest } from "../http/exchange.js";
import type { Operator } from "./operator.js";
import { type AdminToken, hashAdminToken } from "./token-file.js";

/** Who may go on; nobody otherwise, and how many seconds from now the next try is looked at: 0 for at once. */
type Admission =
  | { readonly isAdmitted: true; readonly operator: Operator }
  | { readonly isAdmitted: false; readonly waitSeconds: number };

/** Judges the sender of a request to the administration port. */
export type Admit = (request: HttpRequest) => Admission;

/** What admitting needs. */
interface AdmitOptions {
  readonly authenticate: Authenticate;
  readonly clientAddress: (request: HttpRequest) => string;
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
}

/** Of one client in a minute: a scraper with an old token sends four. */
const MAX_WRONG_TOKENS = 60;

/**
 * Creates the judge. A client that has sent too many wrong tokens is not heard for the rest of the minute, whatever it
 * sends, so that nobody goes through tokens that an operator chose badly. Requests without a token are no tries: any web
 * page can make an operator's browser send those.
 */
export function createAdmit({ authenticate, clientAddress, now }: AdmitOptions): Admit {
  const wrongTokens = createAttempts(MAX_WRONG_TOKENS, now);
  return (request) => {
    if (request.headers.authorization === undefined) return { isAdmitted: false, waitSeconds: 0 };
    const client = clientNetworkOf(clientAddress(request));
    const waitSeconds = wrongTokens.waitSeconds(client);
    if (waitSeconds > 0) return { isAdmitted: false, waitSeconds };
    const operator = authenticate(request);
    if (operator !== undefined) return { isAdmitted: true, operator };
    wrongTokens.add(client);
    return { isAdmitted: false, waitSeconds: 0 };
  };
}

/** Who sent a request to the administration port; undefined without a token, or with one that is not on file. */
export type Authenticate = (request: Pick<HttpRequest, "headers">) => Operator | undefined;

/** RFC 6750 section 2.1; the scheme's case means nothing (RFC 9110 section 11.1). */
const BEARER = /^Bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/**
 * Creates the judge of `Authorization: Bearer`. Hashes are compared, each with each, so that neither the time it takes
 * nor where it ends tells anything of a token; and no number of tries finds one (see token-file.ts).
 */
export function createAuthenticate(tokens: readonly AdminToken[]): Authenticate {
  return ({ headers }) => {
    const token = BEARER.exec(headers.authorization ?? "")?.[1];
    if (token === undefined) return undefined;
    const hash = hashAdminToken(token);
    let found: AdminToken | undefined;
    for (const each of tokens) if (timingSafeEqual(each.hash, hash)) found = each;
    return found && { name: found.name, role: found.role };
  };
}

/** What is counted of each, in windows of a minute that begin with the first. */
interface Attempts {
  /** Whole seconds until there is room for another one; 0 when there is now. */
  waitSeconds(whose: string): number;
  add(whose: string): void;
}

const WINDOW_MS = 60_000;
/** Counted at once, some hundred bytes each: whoever has more addresses than this makes the oldest forgotten. */
const MAX_KEPT = 10_000;

/**
 * Nothing counted yet. By hand, since it has to be known before a body is read, and bounded whoever comes: the limiter of
 * calls answers later, and keeps every key for its minute. Each process counts alone.
 *
 * @param max of each in a minute.
 * @param now milliseconds of a clock that never goes back.
 */
export function createAttempts(max: number, now: () => number): Attempts {
  const kept = new Map<string, { count: number; readonly endsAt: number }>();
  return {
    waitSeconds(whose) {
      const attempts = kept.get(whose);
      if (attempts === undefined || attempts.count < max) return 0;
      return Math.max(0, Math.ceil((attempts.endsAt - now()) / 1000));
    },
    add(whose) {
      const attempts = kept.get(whose);
      if (attempts !== undefined && now() < attempts.endsAt) {
        attempts.count += 1;
        return;
      }
      kept.delete(whose);
      kept.set(whose, { count: 1, endsAt: now() + WINDOW_MS });
      const [oldest = ""] = kept.keys();
      if (kept.size > MAX_KEPT) kept.delete(oldest);
    },
  };
}

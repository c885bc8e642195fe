import { clientNetworkOf } from "../http/client-network.js";
import type { HttpRequest } from "../http/exchange.js";
import { createAttempts } from "./attempts.js";
import type { Authenticate } from "./authenticate.js";
import type { Operator } from "./operator.js";

/** Who may go on; nobody otherwise, and how many seconds from now the next try is looked at: 0 for at once. */
type Admission =
  | { readonly isAdmitted: true; readonly operator: Operator }
  | { readonly isAdmitted: false; readonly waitSeconds: number };

/** Judges the sender of a request to the administration port. */
export type Admit = (request: HttpRequest) => Admission;

/** What admitting needs. */
export interface AdmitOptions {
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

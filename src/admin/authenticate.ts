import { timingSafeEqual } from "node:crypto";
import type { HttpRequest } from "../http/exchange.js";
import type { Operator } from "./operator.js";
import { type AdminToken, hashAdminToken } from "./token-file.js";

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

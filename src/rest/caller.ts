import { type CallerKeys, callerKeysFrom } from "../applications/caller-keys.js";
import type { HttpRequest } from "../listener/exchange.js";
import type { CallQuery } from "./query.js";

/** The keys a request carries, from its query and its headers. */
export function callerKeysOf(request: HttpRequest, { fields }: CallQuery): CallerKeys {
  const partnerKey = request.headers["x-partner-key"];
  return callerKeysFrom(
    {
      authorization: request.headers.authorization,
      partnerKey: typeof partnerKey === "string" ? partnerKey : undefined,
    },
    { publicKey: fields.get("public_key") ?? "", privateKey: fields.get("private_key") },
  );
}

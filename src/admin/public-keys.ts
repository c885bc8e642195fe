import type { ApplicationStore } from "../applications/application.js";

/** Finds the public key of an application by its id; undefined when there is none any more. */
export type PublicKeyOf = (id: string) => Promise<string | undefined>;

/** An application never gets another key, so each is asked for once; the oldest make room. */
const MAX_KEPT = 10_000;

/** Keeps the public keys that were asked for. */
export function createPublicKeys(applications: Pick<ApplicationStore, "publicKeyOf">): PublicKeyOf {
  const kept = new Map<string, string>();
  return async (id) => {
    const known = kept.get(id);
    if (known !== undefined) return known;
    const publicKey = await applications.publicKeyOf(id);
    if (publicKey === undefined) return undefined;
    kept.set(id, publicKey);
    const [oldest] = kept.keys();
    if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
    return publicKey;
  };
}

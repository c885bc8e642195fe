import type { LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import type { AddressDecision } from "./address.js";
import { AddressRefusedError, relayError } from "./failure.js";

/** What a lookup needs; all of it is fixed when a pool is made. */
export interface LookupOptions {
  readonly resolve: (hostname: string) => Promise<readonly LookupAddress[]>;
  /** Judges one address of the answer. */
  readonly decide: (address: string) => AddressDecision;
  /** Budget of one name in milliseconds. */
  readonly timeoutMs: number;
}

/** More addresses are not tried: a host of a provider has a handful. */
const MAX_ADDRESSES = 16;

/**
 * Makes the `lookup` function that `net.connect` and `tls.connect` call once for each new socket: the addresses that
 * were judged are the ones that are dialled, with no second query between (DNS rebinding, threats N09). One refused
 * address refuses the name (N10). Not called for IP literals: the connector judges those.
 *
 * Fails with AddressRefusedError, or RelayError PROVIDER_UNREACHABLE when the name does not resolve in time.
 */
export function createLookup(options: LookupOptions): LookupFunction {
  return (hostname, { all, family }, callback) => {
    resolveAllowed(hostname, familyNumber(family), options).then(
      (found) => {
        const [first] = found;
        // Node.js 20 asks for `all` when it may try several addresses (autoSelectFamily) and then wants the array.
        if (all === true) callback(null, found);
        else callback(null, (first as LookupAddress).address, (first as LookupAddress).family);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
}

async function resolveAllowed(hostname: string, family: number, options: LookupOptions): Promise<LookupAddress[]> {
  const found = await resolveInTime(hostname, options);
  for (const { address } of found) {
    const { result, rule } = options.decide(address);
    if (result === "deny") throw new AddressRefusedError(rule);
  }
  const wanted = family === 0 ? found : found.filter(({ address }) => isIP(address) === family);
  if (wanted.length === 0) throw relayError("name");
  return wanted.slice(0, MAX_ADDRESSES);
}

/** The resolver has timeouts of its own; this one holds for every resolver. */
async function resolveInTime(hostname: string, options: LookupOptions): Promise<readonly LookupAddress[]> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("DNS timeout")), options.timeoutMs);
  });
  try {
    return await Promise.race([options.resolve(hostname), timeout]);
  } catch (error) {
    throw relayError("name", error);
  } finally {
    clearTimeout(timer);
  }
}

function familyNumber(family: number | "IPv4" | "IPv6" | undefined): number {
  if (family === "IPv4") return 4;
  return family === "IPv6" ? 6 : (family ?? 0);
}

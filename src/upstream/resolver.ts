import { promises as dns, type LookupAddress } from "node:dns";

/** Finds the addresses of a host name. Rejects, or answers an empty list, when there are none. */
export type Resolve = (hostname: string, allowPrivateNetwork: boolean) => Promise<readonly LookupAddress[]>;

/**
 * The default resolver: DNS queries of its own (c-ares), A and AAAA together. It does not use getaddrinfo, whose calls
 * occupy the few threads that files and zlib share, so that hanging names would block every other call (threats N13).
 *
 * Names in the hosts file and short names of a search list exist only for getaddrinfo. They are asked for there when
 * the provider may be in a private network and DNS itself does not know the name; such an answer comes at once.
 * `localhost` needs no query at all (RFC 6761 section 6.3).
 *
 * @param timeoutMs budget of one name; a try gets a quarter of it and the second try twice that, so that one record
 * type that never answers does not take the other one with it.
 * @param servers `address:port` of DNS servers; default those of the system.
 */
export function createResolver(timeoutMs: number, servers?: readonly string[]): Resolve {
  const resolver = new dns.Resolver({ timeout: Math.max(1, Math.floor(timeoutMs / 4)), tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  return async (hostname, allowPrivateNetwork) => {
    if (hostname === "localhost" || hostname.endsWith(".localhost")) return LOCALHOST;
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const found = [...addresses(v4, 4), ...addresses(v6, 6)];
    if (found.length > 0) return found;
    const reason: unknown = v4.status === "rejected" ? v4.reason : undefined;
    if (allowPrivateNetwork && isUnknownName(reason)) return dns.lookup(hostname, { all: true });
    throw reason ?? new Error("no addresses");
  };
}

const LOCALHOST: readonly LookupAddress[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

function addresses(result: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return result.status === "fulfilled" ? result.value.map((address) => ({ address, family })) : [];
}

function isUnknownName(reason: unknown): boolean {
  const code = reason instanceof Error && "code" in reason ? reason.code : undefined;
  return code === "ENOTFOUND" || code === "ENODATA";
}

import { promises as dns, type LookupAddress, type RecordWithTtl } from "node:dns";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";
import type { buildConnector as Builder } from "undici";
import { bytesFromAddress } from "../lib/address-list.js";
import { keepNewest } from "../lib/keep-newest.js";
import { type AddressDecision, decideAddress } from "./address.js";
import { AddressRefusedError, relayError } from "./failure.js";
import type { CallLimits } from "./request.js";
import { buildConnector } from "./undici.js";

/** Opens one socket; returns it at once, while it is still connecting, so that it can be destroyed. */
export type Connect = (options: Builder.Options, callback: Builder.Callback) => Socket | undefined;

/** Options for opening sockets, the same for every provider. */
export interface ConnectorOptions extends DialPolicy, Pick<CallLimits, "dnsTimeoutMs" | "connectTimeoutMs"> {
  readonly resolve: Resolve;
  readonly secureContext: SecureContext;
}

/** Time for one address. The default of Node.js, 250 ms, fails on slow dual-stack hosts (threats 6.2). */
const ATTEMPT_TIMEOUT_MS = 500;

/** Trust for provider certificates: the roots of Node.js (and NODE_EXTRA_CA_CERTS), plus `ca` when given. */
export function createTrust(ca: string | Buffer | undefined): SecureContext {
  return createSecureContext({
    minVersion: "TLSv1.2",
    ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
  });
}

/**
 * Creates the function that opens the sockets of one pool: only to allowed addresses, always with certificate checks.
 */
export function createConnector(options: ConnectorOptions, target: Target): Connect {
  const decide = (address: string) => decideDial(address, options, target);
  const connect = buildConnector({
    lookup: createLookup({
      resolve: (hostname) => options.resolve(hostname, target.allowPrivateNetwork),
      decide,
      timeoutMs: options.dnsTimeoutMs,
    }),
    timeout: options.connectTimeoutMs,
    secureContext: options.secureContext,
    rejectUnauthorized: true,
    allowH2: false,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_TIMEOUT_MS,
  });
  const held: { session?: Buffer } = {};
  return (dial, callback) => {
    const decision = isIP(dial.hostname) === 0 ? undefined : decide(dial.hostname);
    // undici's connector returns the socket, though its type does not say so (lib/core/connect.js).
    if (decision?.result === "deny") {
      process.nextTick(callback, new AddressRefusedError(decision.rule), null);
      return undefined;
    }
    const socket = connect(dial, callback) as unknown as Socket;
    // undici resumes sessions, but holds them by weak references: the next GC would free the latest one.
    return socket.on("session", (session: Buffer) => {
      held.session = session;
    });
  };
}

/** What a lookup needs; fixed when a pool is created. */
interface LookupOptions {
  readonly resolve: (hostname: string) => Promise<readonly LookupAddress[]>;
  /** Checks one address of the answer. */
  readonly decide: (address: string) => AddressDecision;
  /** Budget of one name in milliseconds. */
  readonly timeoutMs: number;
}

/** Most addresses that are tried: a provider's host has a handful. */
const MAX_ADDRESSES = 16;

/**
 * Creates the `lookup` function that `net.connect` and `tls.connect` call once per new socket. The addresses that were
 * checked are the ones dialled, with no second query in between (DNS rebinding, threats N09). One refused address
 * refuses the whole name (N10). Not called for IP literals: the connector checks those.
 *
 * Fails with AddressRefusedError, or RelayError PROVIDER_UNREACHABLE when the name does not resolve in time.
 */
export function createLookup(options: LookupOptions): LookupFunction {
  return (hostname, _options, callback) => {
    // With `autoSelectFamily` Node.js wants all addresses of both families, as an array.
    resolveAllowed(hostname, options).then(
      (found) => callback(null, found),
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
}

async function resolveAllowed(hostname: string, options: LookupOptions): Promise<LookupAddress[]> {
  const found = await resolveInTime(hostname, options);
  for (const { address } of found) {
    const { result, rule } = options.decide(address);
    if (result === "deny") throw new AddressRefusedError(rule);
  }
  if (found.length === 0) throw relayError("name");
  return found.slice(0, MAX_ADDRESSES);
}

/** The default resolver has its own timeouts; this one applies to every resolver. */
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

/** An address and port that the relay itself listens on. */
export interface SelfAddress {
  readonly address: string;
  readonly port: number;
}

/** Policy for every dial of the process. */
interface DialPolicy {
  readonly allowLoopback: boolean;
  readonly selfAddresses: () => readonly SelfAddress[];
}

/** Target of one pool. */
interface Target {
  /** `https:` or `http:`. */
  readonly protocol: string;
  readonly port: number;
  readonly allowPrivateNetwork: boolean;
}

/** Decides whether an address may be dialled for a target: by its range, by the scheme, and never the relay itself. */
export function decideDial(address: string, policy: DialPolicy, target: Target): AddressDecision {
  const decision = decideAddress(address, {
    allowLoopback: policy.allowLoopback,
    allowPrivateNetwork: target.allowPrivateNetwork,
  });
  if (decision.result === "deny") return decision;
  // A token is sent in cleartext only where nobody else can listen.
  if (target.protocol !== "https:" && decision.rule !== "loopback") return { result: "deny", rule: "cleartext" };
  return isSelf(address, target.port, policy.selfAddresses()) ? { result: "deny", rule: "self" } : decision;
}

/** Whether a dial would reach a listener of this process (threats N15). */
function isSelf(address: string, port: number, listeners: readonly SelfAddress[]): boolean {
  const key = addressKey(address);
  return listeners.some((listener) => {
    if (listener.port !== port) return false;
    const own = addressKey(listener.address);
    return own === key || (isUnspecified(own) && isOwnInterface(key));
  });
}

/** A listener on 0.0.0.0 or :: accepts connections to every address of the machine. */
function isOwnInterface(key: string): boolean {
  if (key.startsWith("127.") || key === addressKey("::1")) return true;
  return Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => addressKey(address) === key));
}

function isUnspecified(key: string): boolean {
  return /^[0.]+$/.test(key);
}

/** The same text for every spelling of an address; an IPv4-mapped one counts as its IPv4 address. */
function addressKey(address: string): string {
  const bytes = bytesFromAddress(address) ?? new Uint8Array();
  const text = bytes.join(".");
  return text.startsWith(MAPPED) ? text.slice(MAPPED.length) : text;
}

const MAPPED = "0.0.0.0.0.0.0.0.0.0.255.255.";

/** Resolves a host name. Rejects, or resolves to an empty list, when there are no addresses. */
export type Resolve = (hostname: string, allowPrivateNetwork: boolean) => Promise<readonly LookupAddress[]>;

/**
 * Creates the default resolver: its own DNS queries (c-ares), A and AAAA in parallel. It avoids getaddrinfo, whose
 * calls occupy the few threads that files and zlib share, so that hanging names would block every other call (threats
 * N13).
 *
 * Names in the hosts file and short names of a search list are known only to getaddrinfo. It is used when the provider
 * may be in a private network and DNS does not know the name; such an answer comes at once. DNS answers are cached for
 * their TTL, five minutes at most. `localhost` needs no query at all (RFC 6761 section 6.3).
 *
 * @param timeoutMs budget for one name; the first try gets a quarter of it and the second twice that, so that one
 *   record type that never answers does not make the other one fail too.
 * @param servers `address:port` of DNS servers; default those of the system.
 */
export function createResolver(timeoutMs: number, servers?: readonly string[]): Resolve {
  const resolver = new dns.Resolver({ timeout: Math.max(1, Math.floor(timeoutMs / 4)), tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  const known = new Map<string, KnownName>();
  return async (hostname, allowPrivateNetwork) => {
    if (hostname === "localhost" || hostname.endsWith(".localhost")) return LOCALHOST;
    const kept = known.get(hostname);
    if (kept !== undefined && performance.now() < kept.until) return kept.addresses;
    const [v4, v6] = await Promise.allSettled([
      resolver.resolve4(hostname, { ttl: true }),
      resolver.resolve6(hostname, { ttl: true }),
    ]);
    const found = [...recordsOf(v4), ...recordsOf(v6)];
    const faults = [v4, v6].flatMap((asked) => (asked.status === "rejected" ? [asked.reason as unknown] : []));
    // Half an answer is not cached: the reachable addresses may be in the other half.
    if (found.length > 0) return keep(known, hostname, found, faults.every(isUnknownName));
    const [reason] = faults;
    if (allowPrivateNetwork && isUnknownName(reason)) return dns.lookup(hostname, { all: true });
    throw reason ?? new Error("no addresses");
  };
}

const LOCALHOST: readonly LookupAddress[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/** A cached DNS answer. */
interface KnownName {
  readonly addresses: readonly LookupAddress[];
  /** Expiry of the entry, in milliseconds of `performance.now()`. */
  readonly until: number;
}

/** Names in the cache, as many as origins with sockets; the oldest answer is evicted first. */
const MAX_NAMES = 1024;
/** Longest TTL, whatever the record says: a dead address is not dialled for longer. */
const MAX_TTL_S = 300;

function keep(
  known: Map<string, KnownName>,
  hostname: string,
  records: readonly RecordWithTtl[],
  isWhole: boolean,
): readonly LookupAddress[] {
  const addresses = records.map(({ address }) => ({ address, family: isIP(address) }));
  const ttlS = Math.min(MAX_TTL_S, ...records.map(({ ttl }) => ttl));
  if (isWhole) keepNewest(known, hostname, { addresses, until: performance.now() + ttlS * 1000 }, MAX_NAMES);
  else known.delete(hostname);
  return addresses;
}

function recordsOf(result: PromiseSettledResult<RecordWithTtl[]>): readonly RecordWithTtl[] {
  return result.status === "fulfilled" ? result.value : [];
}

function isUnknownName(reason: unknown): boolean {
  const code = reason instanceof Error && "code" in reason ? reason.code : undefined;
  return code === "ENOTFOUND" || code === "ENODATA";
}

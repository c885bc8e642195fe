import { promises as dns, type LookupAddress, type RecordWithTtl } from "node:dns";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";
import type { buildConnector as Builder } from "undici";
import { type AddressDecision, bytesFromAddress, decideAddress } from "./address.js";
import { AddressRefusedError, relayError } from "./failure.js";
import { buildConnector } from "./undici.js";

/** Opens one socket; gives it back at once, while it is still connecting, so that it can be given up. */
export type Connect = (options: Builder.Options, callback: Builder.Callback) => Socket | undefined;

/** What opening sockets needs, the same for every provider. */
export interface ConnectorOptions extends DialPolicy {
  readonly resolve: Resolve;
  readonly dnsTimeoutMs: number;
  /** DNS, TCP and TLS together, in milliseconds. */
  readonly connectTimeoutMs: number;
  readonly secureContext: SecureContext;
}

/** Attempts of 250 ms, the default of Node.js, fail on slow dual-stack hosts (threats 6.2). */
const ATTEMPT_TIMEOUT_MS = 500;

/** Trust for provider certificates: the roots of Node.js (and NODE_EXTRA_CA_CERTS), and `ca` besides when given. */
export function createTrust(ca: string | Buffer | undefined): SecureContext {
  return createSecureContext({
    minVersion: "TLSv1.2",
    ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
  });
}

/** Makes the function that opens the sockets of one pool: judged addresses only, certificates always checked. */
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
    // undici resumes sessions, but holds them by weak references: the next collection would take the latest one.
    return socket.on("session", (session: Buffer) => {
      held.session = session;
    });
  };
}

/** What a lookup needs; all of it is fixed when a pool is made. */
interface LookupOptions {
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

/** An address and port that the relay itself listens on. */
export interface SelfAddress {
  readonly address: string;
  readonly port: number;
}

/** What is the same for every dial of the process. */
interface DialPolicy {
  readonly allowLoopback: boolean;
  readonly selfAddresses: () => readonly SelfAddress[];
}

/** Where one pool dials to. */
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
  // A token leaves in the clear only where nobody else can listen.
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

/** A listener on 0.0.0.0 or :: hears every address of the machine. */
function isOwnInterface(key: string): boolean {
  if (key.startsWith("127.") || key === addressKey("::1")) return true;
  return Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => addressKey(address) === key));
}

function isUnspecified(key: string): boolean {
  return /^[0.]+$/.test(key);
}

/** One text for every spelling of an address; an IPv4-mapped one counts as its IPv4 address. */
function addressKey(address: string): string {
  const bytes = bytesFromAddress(address) ?? new Uint8Array();
  const text = bytes.join(".");
  return text.startsWith(MAPPED) ? text.slice(MAPPED.length) : text;
}

const MAPPED = "0.0.0.0.0.0.0.0.0.0.255.255.";

/** Finds the addresses of a host name. Rejects, or answers an empty list, when there are none. */
export type Resolve = (hostname: string, allowPrivateNetwork: boolean) => Promise<readonly LookupAddress[]>;

/**
 * The default resolver: DNS queries of its own (c-ares), A and AAAA together. It does not use getaddrinfo, whose calls
 * occupy the few threads that files and zlib share, so that hanging names would block every other call (threats N13).
 *
 * Names in the hosts file and short names of a search list exist only for getaddrinfo. They are asked for there when
 * the provider may be in a private network and DNS itself does not know the name; such an answer comes at once.
 * Answers of DNS are kept for as long as they say themselves, and five minutes at most.
 * `localhost` needs no query at all (RFC 6761 section 6.3).
 *
 * @param timeoutMs budget of one name; a try gets a quarter of it and the second try twice that, so that one record
 * type that never answers does not take the other one with it.
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
    // Half an answer is none to keep: the other half may be the one that can be reached.
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

/** What DNS said of a name. */
interface KnownName {
  readonly addresses: readonly LookupAddress[];
  /** In milliseconds of `performance.now()`. */
  readonly until: number;
}

/** As many as there are origins whose sockets are kept; the one that was asked for longest ago makes room. */
const MAX_NAMES = 1024;
/** An address that is dead is not dialled for longer, whatever its record says. */
const MAX_TTL_S = 300;

function keep(
  known: Map<string, KnownName>,
  hostname: string,
  records: readonly RecordWithTtl[],
  isWhole: boolean,
): readonly LookupAddress[] {
  const addresses = records.map(({ address }) => ({ address, family: isIP(address) }));
  const ttlS = Math.min(MAX_TTL_S, ...records.map(({ ttl }) => ttl));
  known.delete(hostname);
  if (!isWhole) return addresses;
  for (const oldest of known.keys()) {
    if (known.size < MAX_NAMES) break;
    known.delete(oldest);
  }
  known.set(hostname, { addresses, until: performance.now() + ttlS * 1000 });
  return addresses;
}

function recordsOf(result: PromiseSettledResult<RecordWithTtl[]>): readonly RecordWithTtl[] {
  return result.status === "fulfilled" ? result.value : [];
}

function isUnknownName(reason: unknown): boolean {
  const code = reason instanceof Error && "code" in reason ? reason.code : undefined;
  return code === "ENOTFOUND" || code === "ENODATA";
}

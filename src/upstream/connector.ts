import { isIP, type Socket } from "node:net";
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";
import { buildConnector } from "undici";
import { type DialPolicy, decideDial, type Target } from "./dial.js";
import { AddressRefusedError } from "./failure.js";
import { createLookup } from "./lookup.js";
import type { Resolve } from "./resolver.js";

/** Opens one socket; gives it back at once, while it is still connecting, so that it can be given up. */
export type Connect = (options: buildConnector.Options, callback: buildConnector.Callback) => Socket | undefined;

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
  return (dial, callback) => {
    const decision = isIP(dial.hostname) === 0 ? undefined : decide(dial.hostname);
    // undici's connector returns the socket, though its type does not say so (lib/core/connect.js).
    if (decision?.result !== "deny") return connect(dial, callback) as unknown as Socket;
    process.nextTick(callback, new AddressRefusedError(decision.rule), null);
    return undefined;
  };
}

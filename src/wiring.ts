import type { CallParts } from "./call-parts.js";
import type { Config } from "./config.js";
import type { HttpRequest } from "./listener/exchange.js";
import type { TlsMaterial } from "./listener/http1.js";
import type { Readiness } from "./listener/readiness.js";
import type { Parts } from "./parts.js";

/** What both ports are wired from. */
export interface Wiring {
  readonly config: Config;
  readonly parts: Parts;
  readonly calls: CallParts;
  readonly readiness: Readiness;
  /** Undefined: cleartext. */
  readonly tls: TlsMaterial | undefined;
  /** Whether an address is one of RELAY_TRUSTED_PROXIES. */
  readonly isTrustedProxy: (address: string) => boolean;
  /** Whom a request comes from, in front of those proxies. */
  readonly clientAddress: (request: HttpRequest) => string;
}

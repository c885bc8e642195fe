import type { Config } from "../config/config.js";
import type { Readiness } from "../http/dispatch.js";
import type { HttpRequest } from "../http/exchange.js";
import type { TlsMaterial } from "../http/http1.js";
import type { CallParts } from "./call-parts.js";
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

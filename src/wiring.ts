import type { CallParts } from "./call-parts.js";
import type { Config } from "./config.js";
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
}

import type { Config, ListenAddress } from "./config.js";
import { parsePublicUrl } from "./settings.js";

/** `http://host:port` of a listener, or https with a certificate. */
export function listenUrlFrom({ tlsCertFile }: Pick<Config, "tlsCertFile">, { host, port }: ListenAddress): string {
  return `${tlsCertFile === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/**
 * The origin at which browsers reach a listener: what the operator says, else where it listens, if that is https or
 * this machine. Undefined when the operator has to say it: authorization codes do not travel in the clear, and nothing
 * is reached at the name of all addresses.
 */
export function publicUrlFrom(
  config: Pick<Config, "publicUrl" | "tlsCertFile">,
  address: ListenAddress,
): string | undefined {
  if (config.publicUrl !== undefined) return config.publicUrl;
  const isUnspecified = address.host === "0.0.0.0" || address.host === "::";
  return isUnspecified ? undefined : parsePublicUrl(new URL(listenUrlFrom(config, address)).origin);
}

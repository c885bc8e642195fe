import { isIP } from "node:net";
import type { Parsed } from "../applications/application.js";
import { parseUrl } from "../lib/parse-url.js";
import { decideAddress } from "../upstream/address.js";

const MAX_LENGTH = 2048;

/**
 * Reads the address that an application's events are sent to: https, or http to this machine where that is allowed.
 * What a host name resolves to is judged when it is dialled.
 */
export function parseWebhookUri(text: string, policy: { readonly allowLoopback: boolean }): Parsed {
  if (text.length > MAX_LENGTH) return { problem: `must have at most ${MAX_LENGTH} characters` };
  const url = /^https?:\/\/[\x21-\x7e]+$/.test(text) ? parseUrl(text) : undefined;
  if (url === undefined) return { problem: "must be an https address" };
  if (text.includes("#") || url.username !== "" || url.password !== "") {
    return { problem: "must have neither a fragment nor a name and password" };
  }
  if (url.href !== text && url.href !== `${text}/`) return { problem: `must be written as ${url.href}` };
  return hostProblem(url, policy) ?? { value: url.href };
}

function hostProblem({ protocol, hostname }: URL, { allowLoopback }: { readonly allowLoopback: boolean }) {
  const address = hostname.replace(/^\[|\]$/g, "");
  const { result, rule } =
    isIP(address) === 0
      ? { result: "allow", rule: hostname === "localhost" ? "loopback" : "name" }
      : decideAddress(address, { allowLoopback: true, allowPrivateNetwork: false });
  if (result === "deny") return { problem: "must not be an address of a private or special network" };
  if (rule === "loopback" && !allowLoopback) {
    return { problem: "is on this machine; that is only for development, with RELAY_ALLOW_LOOPBACK=true" };
  }
  const isSecure = protocol === "https:" || rule === "loopback";
  return isSecure ? undefined : { problem: "must use https" };
}

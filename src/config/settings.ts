import { isLoopbackHost } from "../lib/address-list.js";
import { parseUrl } from "../lib/parse-url.js";

/** `host:port`; IPv6 hosts in brackets. Undefined when it is not one. */
export function parseAddress(text: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

/** A whole number within bounds, in plain digits. */
export function parseInteger(text: string, min: number, max: number): number | undefined {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
}

/** `true` or `false`, also `1` and `0`. */
export function parseSwitch(text: string): boolean | undefined {
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" ? false : undefined;
}

/** One of the given words, exactly. */
export function parseOneOf<const Word extends string>(...words: Word[]): (text: string) => Word | undefined {
  return (text) => words.find((word) => word === text);
}

/** An https origin, or one of http on this machine; empty for none. Undefined when it is neither. */
export function parsePublicUrl(text: string): string | undefined {
  if (text === "") return text;
  const url = parseUrl(text);
  if (url === undefined) return undefined;
  const { origin, protocol, hostname } = url;
  const isAllowed = protocol === "https:" || (protocol === "http:" && isLoopbackHost(hostname.replace(/^\[|\]$/g, "")));
  return isAllowed && origin === text ? text : undefined;
}

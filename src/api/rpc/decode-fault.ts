import { messageFaultFrom } from "../../json/message-fault.js";
import { TOO_MANY_KEYS, TOO_MANY_PARTS } from "./message-parts.js";

/** What the decoder of the binary encoding says first; it quotes nothing. */
export const BINARY_FAULT = "parse binary: ";

/** Texts of connect that quote nothing but numbers. */
const PLAIN = [
  new RegExp(`^${BINARY_FAULT}.*$`, "s"),
  /^protocol error: invalid (?:connect|grpc) timeout value/,
  /^protocol error: promised \d+ bytes, received \d+$/,
  /^protocol error: incomplete envelope$/,
  /^unexpected end flag$/,
  /^timeout \d+ms must be <= \d+$/,
  /^decompression failed$/,
  new RegExp(`^(?:${TOO_MANY_KEYS}|${TOO_MANY_PARTS})$`),
];

/**
 * The text of an error about a message that cannot be decoded, without what it quotes of it (threats J14), but for the
 * name of a field that is not in the schema. Pure.
 */
export function textFromDecodeFault(message: string): string {
  const found = messageFaultFrom(message);
  if (found !== undefined) return `${found.place}: ${found.fault}`;
  return PLAIN.map((pattern) => pattern.exec(message)?.[0]).find(Boolean) ?? "The message cannot be decoded.";
}

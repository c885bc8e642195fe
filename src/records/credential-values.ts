import { isSensitiveField } from "./sensitive-name.js";

/**
 * The credentials that a request holds by the names of its header fields and parameters: an answer that echoes them
 * under another name must not show them either. Pure.
 */
export function credentialValues(
  headers: ReadonlyArray<readonly [name: string, value: string]>,
  url: string,
): string[] {
  const fields = headers
    .filter(([name]) => isSensitiveField(name))
    // The scheme before a credential (RFC 9110 section 11.4) is no part of it.
    .map(([, value]) => value.replace(/^[A-Za-z]+ +/, ""));
  const mark = url.indexOf("?");
  const parameters =
    mark === -1
      ? []
      : url
          .slice(mark + 1)
          .split("&")
          .flatMap(valuesOf);
  return [...fields, ...parameters];
}

/** As it is written, in whatever way that is, and as it is meant. */
function valuesOf(parameter: string): string[] {
  const [[name, value] = ["", ""]] = new URLSearchParams(parameter);
  return isSensitiveField(name) ? [value, parameter.slice(parameter.indexOf("=") + 1)] : [];
}

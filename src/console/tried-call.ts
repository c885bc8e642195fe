import type { CallRequestJson } from "../../gen/relay/v1/relay_pb.js";

/** A call as it stands in the form: text, not judged yet. */
export interface CallForm {
  readonly publicKey: string;
  readonly userId: string;
  readonly providerName: string;
  readonly method: string;
  readonly url: string;
  /** JSON of an object; empty for none. */
  readonly payload: string;
  /** `name: value`, one a line. */
  readonly headers: string;
  /** Empty for none. Kept in memory alone. */
  readonly privateKey: string;
}

/** A call that can be sent, or what has to be corrected in the form. */
export type ReadCall =
  | { readonly call: CallRequestJson }
  | { readonly field: keyof CallForm; readonly problem: string };

/** An empty form. */
export const EMPTY_FORM: CallForm = {
  publicKey: "",
  userId: "",
  providerName: "",
  method: "GET",
  url: "",
  payload: "",
  headers: "",
  privateKey: "",
};

/** Reads the form; whatever the relay can judge itself is left to it. Pure. */
export function readCall(form: CallForm): ReadCall {
  const payload = parsePayload(form.payload);
  if (payload === undefined)
    return { field: "payload", problem: 'The payload must be a JSON object, such as {"title": "hello"}.' };
  const headers = parseHeaders(form.headers);
  if (headers === undefined)
    return { field: "headers", problem: "Each line must be 'name: value', such as 'accept: text/plain'." };
  const { publicKey, userId, providerName, privateKey, url, method } = form;
  return { call: { publicKey, userId, providerName, privateKey, call: { url, method, payload, headers } } };
}

function parsePayload(text: string): Record<string, never> | undefined {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, never>) : undefined;
  } catch {
    // Said above; the parser's own words quote the text.
    return undefined;
  }
}

function parseHeaders(text: string): Record<string, string> | undefined {
  const headers: Record<string, string> = {};
  for (const line of text.split("\n").filter((each) => each.trim() !== "")) {
    const colon = line.indexOf(":");
    if (colon < 1) return undefined;
    headers[line.slice(0, colon).trim()] = line.slice(colon + 1).trim();
  }
  return headers;
}

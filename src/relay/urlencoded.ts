import { queryFromJson } from "./query.js";
import { parseMediaType } from "./text.js";

/** Media type of a form (URL standard, section 5). */
export const URLENCODED = "application/x-www-form-urlencoded";

/**
 * The members of a JSON object as a urlencoded body, in the order written, by the rule of {@link queryFromJson}: arrays
 * of scalars joined with commas, other arrays and objects as JSON text. A space is `+`, as in forms.
 */
export function formFromJson(json: Uint8Array): Buffer {
  const form = new URLSearchParams();
  for (const [name, text] of queryFromJson(json)) form.append(name, text);
  return Buffer.from(form.toString());
}

/** Whether a content-type header says urlencoded, with whatever parameters. */
export function isUrlencoded(contentType: string | undefined): boolean {
  return contentType !== undefined && parseMediaType(contentType).essence === URLENCODED;
}

import { de } from "./de.js";
import { en } from "./en.js";
import { es } from "./es.js";
import { fr } from "./fr.js";
import { ja } from "./ja.js";
import { pt } from "./pt.js";
import type { Texts } from "./texts.js";

/** The languages of the pages. */
const ALL: readonly Texts[] = [en, de, fr, es, pt, ja];

/**
 * The texts in the most preferred available language of `Accept-Language` (RFC 9110 section 12.5.4); English if none
 * matches. Regions are ignored: `pt-BR` gets `pt`. Pure.
 */
export function textsFor(acceptLanguage = ""): Texts {
  let wanted: { readonly texts: Texts; readonly quality: number } | undefined;
  for (const range of acceptLanguage.split(",", MAX_RANGES)) {
    const [, language = "", quality = "1"] = RANGE.exec(range) ?? [];
    const texts = ALL.find((each) => each.language === language.toLowerCase());
    if (texts !== undefined && Number(quality) > (wanted?.quality ?? 0)) wanted = { texts, quality: Number(quality) };
  }
  return wanted?.texts ?? en;
}

/** Browsers send a dozen at most. */
const MAX_RANGES = 32;
const RANGE = /^\s{0,8}([a-z]{2,3})(?:-[\w-]{1,32})?\s{0,8}(?:;\s{0,8}q=([01](?:\.\d{0,3})?)\s{0,8})?$/i;

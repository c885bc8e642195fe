import { randomBytes } from "node:crypto";

/** Finds any trace of a secret in a text: the name of the form it is in, or undefined. */
export type LeakFinder = (text: string) => string | undefined;

/** A part this long is a leak (threats L04). */
export const PART_LENGTH = 12;

/** Tokens to watch for, and how to find any of them. */
export interface Canaries {
  readonly tokens: readonly string[];
  /** Finds any part of a token that is long enough to be one. */
  readonly findPart: LeakFinder;
  /** Finds a token as a whole only: for what a provider itself has cut up. */
  readonly findWhole: LeakFinder;
}

/**
 * Makes tokens of two families: characters that no encoding touches, and base64 with those that each encoding spells
 * differently. Tokens of a family differ in their last characters only, so that one search finds a part of any.
 */
export function createCanaries(count: number): Canaries {
  const families = ["", "+/x/+="].map((tail) => `CANARY_${randomBytes(24).toString("base64url")}${tail}`);
  const tokens = Array.from({ length: count }, (_, at) => `${families[at % 2]}${String(at).padStart(2, "0")}`);
  return {
    tokens,
    findPart: firstOf(families.map((family) => createLeakFinder(family, PART_LENGTH))),
    findWhole: firstOf(tokens.map((token) => createLeakFinder(token, Number.POSITIVE_INFINITY))),
  };
}

function firstOf(finders: readonly LeakFinder[]): LeakFinder {
  return (text) => finders.map((find) => find(text)).find((form) => form !== undefined);
}

/** Searches for every part of that length of the secret as it is, in hex, base64 at any alignment, URL-encoded. */
export function createLeakFinder(secret: string, partLength: number): LeakFinder {
  const forms = formsOf(secret).map(([name, form]) => [name, partsOf(form.toLowerCase(), partLength)] as const);
  return (text) => {
    // In any case: media types are printed in lower case.
    const searched = text.toLowerCase();
    return forms.find(([, parts]) => parts.some((part) => searched.includes(part)))?.[0];
  };
}

function formsOf(secret: string): ReadonlyArray<readonly [name: string, form: string]> {
  return [
    ["raw", secret],
    ["URL-encoded", encodeURIComponent(secret)],
    ["hex", Buffer.from(secret).toString("hex")],
    ...[0, 1, 2].flatMap((lead) => {
      const core = base64Core(secret, lead);
      return [["base64", core] as const, ["base64url", core.replaceAll("+", "-").replaceAll("/", "_")] as const];
    }),
  ];
}

/** The characters that are the same whatever stands around the secret. */
function base64Core(secret: string, lead: number): string {
  const encoded = Buffer.from(" ".repeat(lead) + secret)
    .toString("base64")
    .replace(/=+$/, "");
  return encoded.slice(Math.ceil((lead * 8) / 6), Math.floor(((lead + secret.length) * 8) / 6));
}

function partsOf(form: string, partLength: number): string[] {
  const length = Math.min(partLength, form.length);
  return Array.from({ length: form.length - length + 1 }, (_, at) => form.slice(at, at + length));
}

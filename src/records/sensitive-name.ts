/** Replaces a masked value. */
export const MASKED = "[masked]";

/** Parts that make a name sensitive, in the spelling of {@link lettersOf}. */
const NAME_PART =
  /token|secret|passw|passphrase|passcode|credential|authorization|authentication|apikey|accesskey|privatekey|signingkey|sessionid|cookie|jwt|assertion|codeverifier|signature|bearer|hmac/;
const WHOLE = new Set(["auth", "otp", "pass", "pin", "pwd", "session", "sid", "sig"]);

/** Whether the name of a body's member suggests a credential. Errs on the side of masking. */
export function isSensitiveName(name: string): boolean {
  const letters = lettersOf(name);
  return WHOLE.has(letters) || NAME_PART.test(letters);
}

/** The same for a header field or query parameter, where a name that ends in `key` counts too. */
export function isSensitiveField(name: string): boolean {
  return isSensitiveName(name) || lettersOf(name).endsWith("key");
}

/** The form in which names are compared: lower-case letters and digits only. */
export function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** Members that hold the name of another value, as in `{"name":"password","value":"…"}`. */
const NAMING = new Set(
  "name key field header label param parameter property itemprop attribute option variable env id n k".split(" "),
);
/** Members that hold that value. */
const VALUES = new Set("value values val content contents data text default defaultvalue v".split(" "));

/** Whether this member holds the name of a value beside it, or that value. */
export function roleOf(letters: string): "naming" | "value" | undefined {
  if (NAMING.has(letters)) return "naming";
  return VALUES.has(letters) ? "value" : undefined;
}

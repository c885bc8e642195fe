/** What stands for a value that nobody is to see. */
export const MASKED = "[masked]";

/** In a name without its dashes, dots and underscores, lower-case. */
const NAME_PART =
  /token|secret|passw|passphrase|passcode|credential|authorization|authentication|apikey|accesskey|privatekey|signingkey|sessionid|cookie|jwt|assertion|codeverifier|signature|bearer|hmac/;
const WHOLE = new Set(["auth", "otp", "pass", "pin", "pwd", "session", "sid", "sig"]);

/** Whether a member of a body says by its name that its value is a credential. Rather one too many than one too few. */
export function isSensitiveName(name: string): boolean {
  const letters = lettersOf(name);
  return WHOLE.has(letters) || NAME_PART.test(letters);
}

/** The same of a header field or a parameter of a query, where `key` is one as well. */
export function isSensitiveField(name: string): boolean {
  return isSensitiveName(name) || lettersOf(name).endsWith("key");
}

/** A name in the spelling in which names are compared: letters and digits alone, lower-case. */
export function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** Names of what holds the name of another value, as in `{"name":"password","value":"…"}`. */
const NAMING = new Set(
  "name key field header label param parameter property itemprop attribute option variable env id n k".split(" "),
);
/** Names of what then holds that value. */
const VALUES = new Set("value values val content contents data text default defaultvalue v".split(" "));

/** Whether the value of this name is the name of a value beside it, or that value. */
export function roleOf(letters: string): "naming" | "value" | undefined {
  if (NAMING.has(letters)) return "naming";
  return VALUES.has(letters) ? "value" : undefined;
}

/** What stands for a value that nobody is to see. */
export const MASKED = "[masked]";

/** In a name without its dashes, dots and underscores, lower-case. */
const PART =
  /token|secret|passw|passphrase|passcode|credential|authorization|authentication|apikey|accesskey|privatekey|signingkey|sessionid|cookie|jwt|assertion|codeverifier|signature|bearer|hmac/;
const WHOLE = new Set(["auth", "otp", "pass", "pin", "pwd", "session", "sid", "sig"]);

/** Whether a member of a body says by its name that its value is a credential. Rather one too many than one too few. */
export function isSensitiveName(name: string): boolean {
  const letters = lettersOf(name);
  return WHOLE.has(letters) || PART.test(letters);
}

/** The same of a header field or a parameter of a query, where `key` is one as well. */
export function isSensitiveField(name: string): boolean {
  return isSensitiveName(name) || lettersOf(name).endsWith("key");
}

function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** How a provider may be named, for people. */
export const PROVIDER_NAME_HINT =
  "must be 1 to 63 lower-case letters, digits, '-' and '_', and start with a letter or digit";

/** Whether a definition can have this name: none is stored for another one, and no store is asked for it. */
export function isProviderName(text: string): boolean {
  return /^[a-z0-9][a-z0-9_-]{0,62}$/.test(text);
}

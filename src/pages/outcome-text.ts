import type { ConnectOutcome } from "../authorization/redirect.js";
import type { Provider } from "../providers/provider.js";
import type { Message } from "./message-page.js";

/** A map, since the code is the provider's and may be any word, `constructor` too. */
const WHY: ReadonlyMap<string, string> = new Map([
  ["access_denied", "You did not allow it, or your organisation does not."],
  ["invalid_grant", "The provider no longer took its own answer. Try again."],
  ["temporarily_unavailable", "The provider could not be reached. Try again in a minute."],
  ["invalid_scope", "The application asks for something that the provider does not know."],
  ["invalid_client", "The application is not set up correctly at the provider."],
  ["unauthorized_client", "The application is not set up correctly at the provider."],
]);

/** What a person is told when an attempt to connect has ended. Pure. */
export function messageFromOutcome({ displayName }: Pick<Provider, "displayName">, outcome: ConnectOutcome): Message {
  if (outcome.outcome === "success") {
    return { title: `${displayName} is connected`, advice: "You can close this window.", detail: undefined };
  }
  const advice = WHY.get(outcome.error) ?? "The provider answered with an error. Try again.";
  return { title: `${displayName} is not connected`, advice, detail: `Error: ${outcome.error}` };
}

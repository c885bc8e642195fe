import type { ConnectOutcome } from "../authorization/redirect.js";
import type { Provider } from "../providers/provider.js";
import type { Message } from "./message-page.js";

const NOT_SET_UP = "The application is not set up correctly at the provider. Tell the people who run it.";

/** A map, since the code is the provider's and may be any word, `constructor` too. */
const WHY: ReadonlyMap<string, string> = new Map([
  ["access_denied", "You did not allow it, or your organisation does not let you. If that was a mistake, try again."],
  ["invalid_grant", "It took too long, or the provider changed its mind. Try again."],
  ["temporarily_unavailable", "The provider could not be reached. Try again in a minute."],
  ["server_error", "The provider has a problem. Try again in a minute."],
  ["invalid_scope", "The application asks for something that the provider does not offer. Tell the people who run it."],
  ["invalid_client", NOT_SET_UP],
  ["unauthorized_client", NOT_SET_UP],
]);

/** What a person is told when an attempt to connect has ended. Pure. */
export function messageFromOutcome({ displayName }: Pick<Provider, "displayName">, outcome: ConnectOutcome): Message {
  if (outcome.outcome === "success") {
    return { title: `${displayName} is connected`, advice: "You can close this window.", detail: undefined };
  }
  const advice = WHY.get(outcome.error) ?? "The provider answered with an error. Try again.";
  return { title: `${displayName} is not connected`, advice, detail: `Error: ${outcome.error}` };
}

import { type Reason, RelayError } from "../model/errors.js";
import type { ConnectOutcome } from "../oauth/callback.js";
import type { Provider } from "../providers/provider.js";
import { html, type Page } from "./document.js";

/** What happened, what it means for the person who reads it, and what it says to those who run the application. */
interface Message {
  readonly title: string;
  readonly advice: string;
  readonly detail: string | undefined;
}

const NOW_NOT: Omit<Message, "detail"> = {
  title: "This does not work right now",
  advice: "Nothing is wrong with your account. Wait a minute, then try again.",
};
const WRONG_ADDRESS: Omit<Message, "detail"> = {
  title: "This link does not work",
  advice: "Go back to the application that sent you here, and start again from there.",
};
const NOT_SET_UP: Omit<Message, "detail"> = {
  title: "This is not set up yet",
  advice: "You did nothing wrong. Tell the people who run the application that sent you here, and show them this page.",
};

const MESSAGES: Partial<Record<Reason, Omit<Message, "detail">>> = {
  CALL_FORMAT_ERROR: WRONG_ADDRESS,
  INVALID_PUBLIC_KEY: WRONG_ADDRESS,
  CALLER_NOT_ALLOWED: WRONG_ADDRESS,
  INVALID_PROVIDER: NOT_SET_UP,
  PROVIDER_MISCONFIGURED: NOT_SET_UP,
};

/** What a person is told of an error; one that is not ours says nothing of itself. */
export function messageFromError(error: unknown): Message {
  if (!(error instanceof RelayError)) return { ...NOW_NOT, detail: undefined };
  return { ...(MESSAGES[error.reason] ?? NOW_NOT), detail: error.message };
}

/** A page that only says something. Pure. */
export function messagePage({ title, advice, detail }: Message): Page {
  return {
    title,
    main: html`<h1>${title}</h1>
<p>${advice}</p>
${detail !== undefined && html`<p class="detail">${detail}</p>`}`,
  };
}

const OUTCOME_NOT_SET_UP = "The application is not set up correctly at the provider. Tell the people who run it.";

/** A map, since the code is the provider's and may be any word, `constructor` too. */
const WHY: ReadonlyMap<string, string> = new Map([
  ["access_denied", "You did not allow it, or your organisation does not let you. If that was a mistake, try again."],
  ["invalid_grant", "It took too long, or the provider changed its mind. Try again."],
  ["temporarily_unavailable", "The provider could not be reached. Try again in a minute."],
  ["server_error", "The provider has a problem. Try again in a minute."],
  ["invalid_scope", "The application asks for something that the provider does not offer. Tell the people who run it."],
  ["invalid_client", OUTCOME_NOT_SET_UP],
  ["unauthorized_client", OUTCOME_NOT_SET_UP],
]);

/** What a person is told when an attempt to connect has ended. Pure. */
export function messageFromOutcome({ displayName }: Pick<Provider, "displayName">, outcome: ConnectOutcome): Message {
  if (outcome.outcome === "success") {
    return { title: `${displayName} is connected`, advice: "You can close this window.", detail: undefined };
  }
  const advice = WHY.get(outcome.error) ?? "The provider answered with an error. Try again.";
  return { title: `${displayName} is not connected`, advice, detail: `Error: ${outcome.error}` };
}

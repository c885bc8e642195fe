import { type Reason, RelayError } from "../model/errors.js";
import type { Page } from "./document.js";
import { html } from "./html.js";

/** What happened, what it means for the person who reads it, and what it says to those who run the application. */
export interface Message {
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

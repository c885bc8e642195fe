import { finishAuthorization } from "../authorization/callback.js";
import { redirectUriWith } from "../authorization/redirect.js";
import { pageUri } from "./connect.js";
import { messagePage } from "./message-page.js";
import { messageFromOutcome } from "./outcome-text.js";
import { sendPage, sendRedirect } from "./send.js";
import type { PageExchange } from "./visit.js";

/** `GET /oauth/callback`: where providers send the browser back to. It goes on to where it came from. */
export async function answerCallback({ options, response, browser, queryText }: PageExchange): Promise<void> {
  const result = await finishAuthorization(options, new URLSearchParams(queryText), browser);
  const { provider, outcome, redirectUri, session } = result;
  if (session !== undefined) return sendRedirect(response, pageUri(session, { provider: provider.name, ...outcome }));
  if (redirectUri !== undefined) return sendRedirect(response, redirectUriWith(redirectUri, provider.name, outcome));
  const status = outcome.outcome === "success" ? 200 : 400;
  sendPage(response, status, messagePage(messageFromOutcome(provider, outcome)));
}

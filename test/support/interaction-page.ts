import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { Provider } from "oidc-provider";

type Interaction = Awaited<ReturnType<Provider["interactionDetails"]>>;

/** Where a test's user signs in and consents, in one page each, as at any provider. */
export async function answerInteraction(
  provider: Provider,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const interaction = await provider.interactionDetails(incoming, response);
  if (incoming.method === "POST") {
    const form = new URLSearchParams(await text(incoming));
    const result = await resultOf(provider, interaction, form);
    return provider.interactionFinished(incoming, response, result, { mergeWithLastSubmission: true });
  }
  response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
  response.end(pageFor(interaction.prompt.name));
}

async function resultOf(provider: Provider, interaction: Interaction, form: URLSearchParams) {
  if (form.get("answer") === "deny") return { error: "access_denied", error_description: "The user said no." };
  if (interaction.prompt.name === "login") return { login: { accountId: form.get("account") ?? "" } };
  return { consent: { grantId: await grantFor(provider, interaction) } };
}

async function grantFor(provider: Provider, { session, params, prompt }: Interaction): Promise<string> {
  const grant = new provider.Grant({ accountId: session?.accountId ?? "", clientId: String(params["client_id"]) });
  const scopes = prompt.details["missingOIDCScope"];
  if (Array.isArray(scopes)) grant.addOIDCScope(scopes.join(" "));
  return grant.save();
}

function pageFor(prompt: string): string {
  const fields =
    prompt === "login"
      ? `<label>Account <input name="account" required autofocus></label><button>Sign in</button>`
      : `<button name="answer" value="allow">Allow</button><button name="answer" value="deny">Deny</button>`;
  return `<!doctype html><title>Provider</title><link rel="icon" href="data:,"><form method="post">${fields}</form>`;
}

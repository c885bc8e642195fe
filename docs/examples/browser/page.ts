// The client package in the browser. The page's own server gives it a call token and a link to connect: server.ts.
import { type Account, createRelayClient, RelayCallError } from "provider-call-relay-client";
import { connectAccount } from "provider-call-relay-client/browser";

interface Caller {
  readonly relayUrl: string;
  readonly apiUrl: string;
  readonly providerName: string;
  readonly userId: string;
  readonly publicKey: string;
  readonly callToken: string;
}

async function start(output: HTMLOutputElement, button: HTMLButtonElement): Promise<void> {
  const {
    relayUrl: url,
    apiUrl,
    publicKey,
    callToken,
    userId,
    providerName,
  } = (await (await fetch("/caller.json")).json()) as Caller;
  const account = createRelayClient({ url, publicKey, callToken }).account(userId, providerName);
  const show = () => showProfile(account, apiUrl, output, button);
  button.onclick = async () => {
    // The link is used up by opening it: one for each click. The window opens before it has come.
    const link = fetch("/connect-link", { method: "POST" }).then((answer) => answer.text());
    const { outcome } = await connectAccount({ link });
    // A window that is gone may have done its work.
    if (outcome === "success" || outcome === "closed") await show();
    else output.textContent = outcome;
  };
  await show();
}

async function showProfile(
  account: Account,
  apiUrl: string,
  output: HTMLOutputElement,
  button: HTMLButtonElement,
): Promise<void> {
  try {
    const { data } = await account.call({ url: `${apiUrl}/me` });
    output.textContent = JSON.stringify(data);
    output.dataset["outcome"] = "success";
    button.hidden = true;
  } catch (error) {
    if (!(error instanceof RelayCallError)) throw error;
    // RELAY_UNREACHABLE: the page's origin is not on the application's list, or no relay answers there.
    output.textContent = error.message;
    output.dataset["outcome"] = error.errorType;
    button.hidden = !/^(?:INVALID_OAUTHID|REAUTHORIZATION_REQUIRED)$/.test(error.errorType);
  }
}

const [output, button] = [document.querySelector("output"), document.querySelector("button")];
if (output !== null && button !== null) void start(output, button);

// The client package in Node.js: npx tsx docs/examples/node/client.ts
import { createRelayClient, RelayCallError } from "provider-call-relay-client";

const env = (name: string, fallback: string) => process.env[name] || fallback;

const privateKey = process.env["PRIVATE_KEY"];
const relay = createRelayClient({
  url: env("RELAY_URL", "http://127.0.0.1:8080"),
  publicKey: env("PUBLIC_KEY", "demo-public-key-for-the-sandbox-only"),
  // An application with caller_auth PRIVATE_KEY proves itself, in a header, which no log of a proxy shows.
  ...(privateKey && { privateKey }),
});
const account = relay.account(env("USER_ID", "ada"), env("PROVIDER", "sandbox"));
const apiUrl = env("API_URL", "http://127.0.0.1:8090");

const { data } = await account.call({ url: `${apiUrl}/me` });
console.log(data);

const message = { channel: "#general", text: "hi" };
console.log((await account.call({ url: `${apiUrl}/chat.postMessage`, method: "POST", payload: message })).data);

try {
  await account.call({ url: `${apiUrl}/status/404` });
} catch (error) {
  if (!(error instanceof RelayCallError)) throw error;
  // INVALID_OAUTHID, REAUTHORIZATION_REQUIRED: send the user to relay.connectLink(). The call id finds the relay's log line.
  console.log(error.errorType, error.statusCode, error.retryable, error.callId);
}

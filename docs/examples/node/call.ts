// A typed Connect client in Node.js: npx tsx docs/examples/node/call.ts
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { RelayService, ResponseMode } from "provider-call-relay-client/relay/v1";

const env = (name: string, fallback: string) => process.env[name] || fallback;

const relay = createClient(
  RelayService,
  // One client for the whole program: it keeps its connections. gRPC: createGrpcTransport({ baseUrl }).
  createConnectTransport({ baseUrl: env("RELAY_URL", "http://127.0.0.1:8080"), httpVersion: "2" }),
);

const caller = {
  providerName: env("PROVIDER", "sandbox"),
  userId: env("USER_ID", "ada"),
  publicKey: env("PUBLIC_KEY", "demo-public-key-for-the-sandbox-only"),
};
const apiUrl = env("API_URL", "http://127.0.0.1:8090");
// An application with caller_auth PRIVATE_KEY proves itself in a header, which no log of a proxy shows.
const privateKey = env("PRIVATE_KEY", "");
const headers = new Headers(privateKey === "" ? {} : { authorization: `Bearer ${privateKey}` });

/** One call; the parsed JSON of the provider, or an error that says what to do. */
async function call(method: string, path: string, payload?: Record<string, string>): Promise<unknown> {
  const { rows } = await relay.call(
    {
      ...caller,
      call: { url: apiUrl + path, method, ...(payload === undefined ? {} : { payload }) },
      // The provider's own bytes: numbers beyond 2^53 stay what they are until this program reads them.
      responseMode: ResponseMode.BODY,
    },
    { headers, timeoutMs: 30_000 },
  );
  const [row] = rows;
  if (row?.pincStatus === "success") return JSON.parse(new TextDecoder().decode(row.body));
  // REAUTHORIZATION_REQUIRED: send the user to the relay's connect page. The call id finds the relay's log line.
  throw new Error(`${row?.errorType} (${row?.statusCode}): ${row?.inernalError} [call ${row?.callId}]`);
}

try {
  console.log(await call("GET", "/me"));
  console.log(await call("POST", "/chat.postMessage", { channel: "#general", text: "hi" }));
  await call("GET", "/status/404").catch((error: Error) => console.log(error.message));
} catch (error) {
  // Only what never became a call is an error of the protocol: no relay there, a message too large.
  if (!(error instanceof ConnectError)) throw error;
  console.error(error.code === Code.Unavailable ? "No relay answers there." : error.message);
  process.exitCode = 1;
}

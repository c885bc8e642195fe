// gRPC with @grpc/grpc-js, the messages read from proto/ at run time: node docs/examples/grpc-js/call.mjs
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { credentials, loadPackageDefinition, Metadata } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const env = (name, fallback) => process.env[name] || fallback;

const folder = (url) => fileURLToPath(new URL(".", url));
const includeDirs = [folder(new URL("../../../proto/", import.meta.url))];
const { relay } = loadPackageDefinition(loadSync("relay/v1/relay.proto", { includeDirs, keepCase: true }));

const target = env("RELAY_URL", "http://127.0.0.1:8080").replace(/^https?:\/\//, "");
// createSsl() where the relay, or the proxy in front of it, speaks TLS.
const client = new relay.v1.RelayService(target, credentials.createInsecure());
const performCall = promisify(client.Call.bind(client));

const metadata = new Metadata();
if (env("PRIVATE_KEY", "") !== "") metadata.set("authorization", `Bearer ${env("PRIVATE_KEY", "")}`);

const { rows } = await performCall(
  {
    provider_name: env("PROVIDER", "sandbox"),
    user_id: env("USER_ID", "ada"),
    public_key: env("PUBLIC_KEY", "demo-public-key-for-the-sandbox-only"),
    call: { url: `${env("API_URL", "http://127.0.0.1:8090")}/me`, method: "GET" },
    // The provider's own bytes: google.protobuf.Value is a tree that few programs want.
    response_mode: "RESPONSE_MODE_BODY",
  },
  metadata,
  { deadline: Date.now() + 30_000 },
);
const [row] = rows;
console.log(row.pinc_status, row.pinc_status === "success" ? JSON.parse(row.body) : row.inernal_error);
client.close();

import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { sealClientSecret } from "../tokens/client-secret.js";
import { Secret } from "../tokens/secret.js";
import { type ClientOptions, clientKeyFrom } from "./client-key.js";
import { addCommand } from "./command.js";
import { usageError } from "./exit-error.js";
import { type OpenStore, withStore } from "./open-store.js";
import { writeJson, writeLine, writeNote } from "./output.js";
import { readStandardInput } from "./read-input.js";

const MAX_BYTES = 64 * 1024;

interface Credentials {
  readonly clientId: string;
  readonly clientSecret: Secret | undefined;
}

/** `relay client put` */
export function addClientPut(group: Command): void {
  addCommand(group, {
    usage: "put",
    about: "Store an application's OAuth client at a provider; the secret is sealed. One that exists is replaced.",
    examples: ["relay client put --app PUBLIC_KEY --provider github < client.json"],
    more: `Standard input holds {"client_id": "…", "client_secret": "…"}; a public client has no
client_secret. The secret is no argument, since those stand in the shell's history.`,
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .requiredOption("--provider <name>", "the provider's name or alias")
    .action(put);
}

async function put(options: ClientOptions): Promise<void> {
  if (process.stdin.isTTY) writeNote("Paste the client as JSON, then press Ctrl-D.");
  const credentials = credentialsFrom((await readStandardInput(MAX_BYTES)).toString());
  const providerName = await withStore((open) => putClient(open, options, credentials));
  if (options.json) writeJson({ provider: providerName, clientId: credentials.clientId });
  else writeLine(`Stored the client ${credentials.clientId} for ${providerName}.`);
}

async function putClient(open: OpenStore, options: ClientOptions, credentials: Credentials): Promise<string> {
  const key = await clientKeyFrom(open, options);
  const { clientId, clientSecret } = credentials;
  await open.store.oauthClients.put({
    id: randomUUID(),
    ...key,
    clientId,
    clientSecret: clientSecret && sealClientSecret(open.sealer, key, clientSecret),
    updatedAt: Date.now(),
  });
  return key.providerName;
}

function credentialsFrom(text: string): Credentials {
  const { client_id: clientId, client_secret: clientSecret } = membersFrom(text);
  if (!isCredential(clientId)) throw usageError("client_id must be a string of printable ASCII.");
  if (clientSecret === undefined || clientSecret === null || clientSecret === "") {
    return { clientId, clientSecret: undefined };
  }
  if (!isCredential(clientSecret)) throw usageError("client_secret must be a string of printable ASCII.");
  return { clientId, clientSecret: new Secret(clientSecret) };
}

/** The parser's own words quote the text. */
function membersFrom(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return { ...value };
  } catch {
    // Said below.
  }
  throw usageError('Standard input must be JSON: {"client_id": "…", "client_secret": "…"}.');
}

/** VSCHAR of RFC 6749 appendix A.1 and A.2. */
function isCredential(value: unknown): value is string {
  return typeof value === "string" && /^[\x20-\x7e]{1,4096}$/.test(value);
}

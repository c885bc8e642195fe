import type { Command } from "commander";
import { oauthClientProblem } from "../admin/oauth-client-problem.js";
import { type OAuthClientFields, putOAuthClient } from "../admin/put-oauth-client.js";
import { Secret } from "../tokens/secret.js";
import { administrationOf } from "./administration.js";
import { type ClientOptions, clientKeyFrom } from "./client-key.js";
import { addCommand, collect } from "./command.js";
import { failure, usageError } from "./exit-error.js";
import { type OpenStore, withStore } from "./open-store.js";
import { originParametersFrom } from "./origin-parameters.js";
import { writeJson, writeLine, writeNote } from "./output.js";
import { readStandardInput } from "./read-input.js";

const MAX_BYTES = 64 * 1024;

interface PutOptions extends ClientOptions {
  readonly param?: readonly string[];
}

type Credentials = Omit<OAuthClientFields, "originParameters">;

/** `relay client put` */
export function addClientPut(group: Command): void {
  addCommand(group, {
    usage: "put",
    about: "Store an application's OAuth client at a provider; the secret is sealed. One that exists is replaced.",
    examples: ["relay client put --app PUBLIC_KEY --provider github < client.json"],
    more: `Standard input holds {"client_id": "…", "client_secret": "…"}; a public client has no
client_secret. The secret is no argument, since those stand in the shell's history. A further
member "scope" is what users are asked to allow, instead of the definition's default.`,
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .requiredOption("--provider <name>", "the provider's name or alias")
    .option("--param <name=value>", "parameter of the provider's origin that the client is for", collect)
    .action(put);
}

async function put(options: PutOptions): Promise<void> {
  if (process.stdin.isTTY) writeNote("Paste the client as JSON, then press Ctrl-D.");
  const credentials = credentialsFrom((await readStandardInput(MAX_BYTES)).toString());
  const providerName = await withStore((open) => putNamed(open, options, credentials));
  if (options.json) writeJson({ provider: providerName, clientId: credentials.clientId });
  else writeLine(`Stored the client ${credentials.clientId} for ${providerName}.`);
}

async function putNamed(open: OpenStore, options: PutOptions, credentials: Credentials): Promise<string> {
  const key = await clientKeyFrom(open, options);
  const problem = oauthClientProblem(key.provider);
  if (problem !== undefined) throw failure(`${key.providerName} ${problem}.`);
  const originParameters = options.param === undefined ? {} : originParametersFrom(options.param, key.provider);
  await putOAuthClient(administrationOf(open), key, { ...credentials, originParameters });
  return key.providerName;
}

function credentialsFrom(text: string): Credentials {
  const { client_id: clientId, client_secret: clientSecret, scope = "" } = membersFrom(text);
  if (typeof scope !== "string" || !/^[\x20-\x7e]{0,4096}$/.test(scope)) {
    throw usageError("scope must be a string of printable ASCII.");
  }
  if (!isCredential(clientId)) throw usageError("client_id must be a string of printable ASCII.");
  if (clientSecret === undefined || clientSecret === null || clientSecret === "") {
    return { clientId, clientSecret: undefined, scope };
  }
  if (!isCredential(clientSecret)) throw usageError("client_secret must be a string of printable ASCII.");
  return { clientId, clientSecret: new Secret(clientSecret), scope };
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

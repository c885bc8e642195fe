import type { Command } from "commander";
import { putConnection } from "../admin/connections.js";
import { MAX_ID_LENGTH } from "../applications/caller.js";
import type { Connection } from "../oauth/connection.js";
import { parseTokenResponse, type TokenResponse, TokenResponseError } from "../oauth/token-response.js";
import type { Provider } from "../providers/provider.js";
import { noApplication } from "./application.js";
import { addCommand, collect, usageError } from "./command.js";
import { type ConnectionOptions, jsonFromConnection, textFromConnection } from "./connection-key.js";
import { administrationOf, loadCatalog, type OpenStore, requireProvider, withStore } from "./open-store.js";
import { originParametersFrom } from "./origin-parameters.js";
import { writeJson, writeLine, writeNote } from "./output.js";
import { readStandardInput } from "./read-input.js";

/** Four times the longest tokens together. */
const MAX_TOKEN_RESPONSE_BYTES = 64 * 1024;

interface PutOptions extends ConnectionOptions {
  readonly param?: readonly string[];
}

/** `relay connection put` */
export function addConnectionPut(group: Command): void {
  addCommand(group, {
    usage: "put",
    about: "Store a user's tokens, sealed; a connection that exists gets the new ones.",
    examples: ["relay connection put --app PUBLIC_KEY --user ada --provider github < token-response.json"],
    more: `Standard input holds the provider's token response (RFC 6749 section 5.1) as JSON: access_token,
and if there are any refresh_token, expires_in, scope, token_type, id_token. Tokens are no
arguments, since those stand in the shell's history and in the list of processes.`,
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .requiredOption("--user <id>", "the application's id of its user; calls must name it exactly so")
    .requiredOption("--provider <name>", "the provider's name or alias")
    .option("--param <name=value>", "parameter of the provider's origin; may stand several times", collect)
    .action(put);
}

async function put(options: PutOptions): Promise<void> {
  if (options.user === "" || options.user.length > MAX_ID_LENGTH) {
    throw usageError(`--user must have 1 to ${MAX_ID_LENGTH} characters.`);
  }
  if (process.stdin.isTTY) writeNote("Paste the token response, then press Ctrl-D.");
  const input = (await readStandardInput(MAX_TOKEN_RESPONSE_BYTES)).toString();
  const connection = await withStore((open) => putNamed(open, options, input));
  if (options.json) writeJson(jsonFromConnection(connection));
  else writeLine(textFromConnection(connection));
}

async function putNamed(open: OpenStore, options: PutOptions, input: string): Promise<Connection> {
  const provider = requireProvider(await loadCatalog(open.config), options.provider);
  const response = responseFrom(input, provider);
  const originParameters = originParametersFrom(options.param ?? [], provider);
  const application = await open.store.applications.findByPublicKey(options.app);
  if (application === undefined) throw noApplication();
  const made = { application, userId: options.user, provider, originParameters, response };
  return putConnection(administrationOf(open), made);
}

function responseFrom(text: string, { oauth2 }: Provider): TokenResponse {
  try {
    return parseTokenResponse(text, oauth2?.tokenResponseMember);
  } catch (error) {
    if (!(error instanceof TokenResponseError)) throw error;
    throw usageError(error.message, error);
  }
}

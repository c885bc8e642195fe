import { randomUUID } from "node:crypto";
import type { Application } from "../applications/application.js";
import { parseAnswers, type ValueTexts, withDefaults } from "../providers/connection-value.js";
import type { ConnectionValue, Provider } from "../providers/provider.js";
import type { AuthorizationOptions } from "./authorization-server.js";
import { isOfClient, obtainedAtOf, parseGiven, responseFromSecrets } from "./credentials.js";
import type { Question } from "./start.js";
import { newConnectionFrom } from "./store-answer.js";

/** What a user has entered to connect an account without an authorization server. */
interface EnteredValues {
  readonly application: Application;
  readonly userId: string;
  readonly provider: Provider;
  /** Values that the application has fixed; the user is not asked for them. */
  readonly fixed: ValueTexts;
  /** Undefined before anything was entered. */
  readonly given: ReadonlyMap<string, string> | undefined;
}

/**
 * Stores the connection once the user has entered all its values, and resolves to undefined. Otherwise resolves to the
 * question for the user, with what was wrong. Rejects with RelayError STORE_UNAVAILABLE.
 */
export async function connectByValues(
  options: AuthorizationOptions,
  { application, userId, provider, fixed, given }: EnteredValues,
): Promise<Question | undefined> {
  const { kind } = provider;
  // A user's own token may be used with the application's client.
  const isSigned = provider.oauth1 !== undefined;
  const hasClient = isSigned && (await options.oauthClients.find(application.id, provider.name)) !== undefined;
  const asked = { ...provider, connectionValues: askedFrom(provider, hasClient) };
  const values = asked.connectionValues.filter(({ name }) => !Object.hasOwn(fixed, name));
  const ask = (problem: Question["problem"]): Question => ({ kind: "ask", values, problem });
  if (given === undefined) return ask(undefined);
  const partOf = (isSecret: boolean) =>
    new Map(
      values.flatMap((value) => (value.isSecret === isSecret ? [[value.name, given.get(value.name) ?? ""]] : [])),
    );
  const open = new Map([...partOf(false), ...Object.entries(fixed)]);
  const parsed = parseGiven({ open, secrets: partOf(true) }, asked, parseAnswers);
  if ("problem" in parsed) return ask(parsed);
  const { secrets } = parsed;
  const originParameters = withDefaults(parsed.open, provider);
  const now = options.now();
  const key = { applicationId: application.id, userId, providerName: provider.name };
  const response = responseFromSecrets(kind, secrets);
  const input = { id: randomUUID(), key, response, originParameters, obtainedAt: obtainedAtOf(kind, now) };
  await options.connections.put(newConnectionFrom(options.sealer, { ...input, defaultExpiresInS: undefined }), now);
  options.onEvent({ what: "connect", applicationId: application.id, provider: provider.name, outcome: "success" });
  return undefined;
}

/**
 * The values to ask the user for. For tokens that are issued to a client, the user must enter a client of their own:
 * the application's has the access of the whole application, and anybody who reached this page would get it. Only an
 * operator stores such connections.
 *
 * @param hasClient whether the application's client is used instead.
 */
function askedFrom({ connectionValues, kind }: Provider, hasClient: boolean): readonly ConnectionValue[] {
  const isClients = ({ name }: ConnectionValue) =>
    isOfClient(kind) && (name === "client_id" || name === "client_secret");
  return connectionValues
    .filter((value) => !(hasClient && isClients(value)))
    .map(
      (value): ConnectionValue =>
        isClients(value) ? { ...value, isOptional: false, source: { kind: "asked" } } : value,
    )
    .filter(({ source }) => source.kind === "asked");
}

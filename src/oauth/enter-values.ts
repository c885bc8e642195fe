import { randomUUID } from "node:crypto";
import type { Application } from "../applications/application.js";
import { parseAnswers } from "../providers/connection-value.js";
import type { ConnectionValue, Provider } from "../providers/provider.js";
import type { AuthorizationOptions } from "./authorization-server.js";
import { isGrantKind, obtainedAtOf, problemOfClient, responseFromSecrets } from "./credentials.js";
import type { Question } from "./start.js";
import { newConnectionFrom } from "./store-answer.js";

/** What a user has entered to connect an account without an authorization server. */
interface EnteredValues {
  readonly application: Application;
  readonly userId: string;
  readonly provider: Provider;
  /** Undefined before anything was entered. */
  readonly given: ReadonlyMap<string, string> | undefined;
}

/**
 * Stores the connection that a user has entered all values of, and resolves to undefined; or to what the user is to be asked,
 * and what was wrong. Rejects with RelayError STORE_UNAVAILABLE.
 */
export async function connectByValues(
  options: AuthorizationOptions,
  { application, userId, provider, given }: EnteredValues,
): Promise<Question | undefined> {
  const { kind } = provider;
  const values = askedFrom(provider);
  const ask = (problem: Question["problem"]): Question => ({ kind: "ask", values, problem });
  if (given === undefined) return ask(undefined);
  const partOf = (isSecret: boolean) =>
    new Map(
      values.flatMap((value) => (value.isSecret === isSecret ? [[value.name, given.get(value.name) ?? ""]] : [])),
    );
  const open = parseAnswers(partOf(false), provider);
  if ("problem" in open) return ask(open);
  const secret = parseAnswers(partOf(true), provider, "secret");
  if ("problem" in secret) return ask(secret);
  const missing = problemOfClient(provider, open.values, secret.values, false);
  if (missing !== undefined) return ask(missing);
  const now = options.now();
  const key = { applicationId: application.id, userId, providerName: provider.name };
  const response = responseFromSecrets(kind, secret.values);
  const input = { id: randomUUID(), key, response, originParameters: open.values, obtainedAt: obtainedAtOf(kind, now) };
  await options.connections.put(newConnectionFrom(options.sealer, { ...input, defaultExpiresInS: undefined }), now);
  options.onEvent({ what: "connect", applicationId: application.id, provider: provider.name, outcome: "success" });
  return undefined;
}

/**
 * Of tokens that are got for a client, the user gives an own one: that of the application stands for all of it, and whoever
 * comes by this page would be given its access. An operator stores such connections.
 */
function askedFrom({ connectionValues, kind }: Provider): readonly ConnectionValue[] {
  const asked = connectionValues.filter(({ source }) => source.kind === "asked");
  if (!isGrantKind(kind)) return asked;
  const isOfClient = ({ name }: ConnectionValue) => name === "client_id" || name === "client_secret";
  return asked.map((value) => (isOfClient(value) ? { ...value, isOptional: false } : value));
}

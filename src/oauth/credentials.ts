import { RelayError } from "../model/errors.js";
import { fillCredential, isBasic, placesOf } from "../providers/connection-value.js";
import type { CredentialTexts } from "../providers/credential.js";
import type { ConnectionKind, Provider } from "../providers/provider.js";
import { Secret } from "../sealing/seal.js";
import type { Connection } from "./connection.js";
import type { TokenResponse } from "./token-answer.js";

/** What goes with a connection's calls, in the clear. Prints itself without it. */
export interface Credentials {
  /** The access token; undefined at kinds without tokens. */
  readonly token: Secret | undefined;
  /** What goes into each place of the provider's credentials. */
  readonly texts: CredentialTexts;
  /** What no answer may hold. */
  readonly secrets: readonly Secret[];
}

/** Whether the connections of a kind hold secret values, which go with calls as they are, in the place of tokens. */
export function isWithoutTokens(kind: ConnectionKind): boolean {
  return kind === "api_key" || kind === "basic";
}

/**
 * Secret values in the form in which they are stored: sealed together where a token would be. They never expire, and
 * nothing refreshes them.
 */
export function responseFromSecrets(kind: ConnectionKind, values: Readonly<Record<string, string>>): TokenResponse {
  return {
    accessToken: new Secret(JSON.stringify(values)),
    // What tells the row from one with tokens.
    tokenType: kind,
    refreshToken: undefined,
    idToken: undefined,
    expiresInS: undefined,
    scope: "",
  };
}

/**
 * What goes with the calls of a connection.
 *
 * Throws RelayError REAUTHORIZATION_REQUIRED, before the secret is opened, when the row is of another kind than the
 * provider's definition has now.
 *
 * @param open opens what is sealed as the row's access token.
 */
export function credentialsOf(
  provider: Provider,
  connection: Pick<Connection, "tokenType" | "originParameters">,
  open: () => Secret,
): Credentials {
  const { kind } = provider;
  requireKind(provider, connection);
  const opened = open();
  if (!isWithoutTokens(kind)) {
    const text = (name: string) => (name === "access_token" ? opened.reveal() : connection.originParameters[name]);
    return { token: opened, ...placedTexts(provider, text, [opened]) };
  }
  const values = valuesIn(opened);
  const own = (name: string) => (Object.hasOwn(values, name) ? values[name] : connection.originParameters[name]);
  const secrets = Object.values(values).map((value) => new Secret(value));
  return { token: undefined, ...placedTexts(provider, own, secrets) };
}

function valuesIn(opened: Secret): Readonly<Record<string, string>> {
  try {
    return JSON.parse(opened.reveal()) as Record<string, string>;
  } catch {
    // The parser's own words quote the text.
    throw new RelayError(
      "STORE_UNAVAILABLE",
      "This connection's secret values cannot be read. The user must connect again.",
    );
  }
}

function requireKind({ kind, name }: Provider, { tokenType }: Pick<Connection, "tokenType">): void {
  const isFit = isWithoutTokens(kind) ? tokenType === kind : tokenType !== "api_key" && tokenType !== "basic";
  if (isFit) return;
  throw new RelayError(
    "REAUTHORIZATION_REQUIRED",
    `The definition of ${name} has become one of the kind ${kind} since this user connected. The user must connect again.`,
  );
}

function placedTexts(
  provider: Provider,
  textOf: (name: string) => string | undefined,
  secrets: readonly Secret[],
): Pick<Credentials, "texts" | "secrets"> {
  const more: Secret[] = [];
  const texts = placesOf(provider).map((place) => {
    if (place.value === "{access_token}") return secrets[0];
    const filled = fillCredential(place, textOf);
    // The base64 of a whole is not that of its parts.
    if (filled !== undefined && isBasic(place)) more.push(new Secret(filled.plain));
    return filled && new Secret(filled.text);
  });
  return { texts, secrets: more.length === 0 ? secrets : [...secrets, ...more] };
}

import type { CredentialPlacement } from "../../gen/relay/admin/v1/provider_pb.js";
import { isTemplate, namesIn } from "./connection-value.js";
import { isDroppedHeader } from "./credential.js";
import {
  type ConnectionKind,
  type ConnectionValue,
  type Credential,
  hasTokens,
  KEY_VALUES,
  type Report,
} from "./provider.js";

/** A token of RFC 9110 section 5.6.2. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;
const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{0,32}$/;
const QUERY_PARAMETER = /^[A-Za-z0-9._~-]{1,64}$/;
const CREDENTIAL_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;

/** Of the kinds that have no Bearer. */
const SCHEMES: Partial<Readonly<Record<ConnectionKind, string>>> = { basic: "Basic", oauth1: "OAuth" };

/**
 * Reads where a credential goes: `Authorization: Bearer` by default (RFC 6750 section 2.1), `Authorization: Basic` for the kind
 * that is (RFC 7617), and `Authorization: OAuth` for the one that signs (RFC 5849 section 3.5.1).
 */
export function parseCredential(
  kind: ConnectionKind,
  placement: CredentialPlacement | undefined,
  defaultValue: string,
  field: string,
  report: Report,
): Credential {
  const value = placement?.value || defaultValue;
  if (!CREDENTIAL_VALUE.test(value))
    report(`${field}.value`, "must be printable ASCII such as {api_key}, 256 characters at most");
  if (placement === undefined || kind === "oauth1") {
    if (placement !== undefined) report(field, "not for the kind oauth1, whose signature goes into Authorization");
    return { kind: "header", name: "authorization", scheme: SCHEMES[kind] ?? "Bearer", value };
  }
  const { scheme, queryParameter } = placement;
  if (queryParameter !== "") {
    if (placement.header !== "") report(`${field}.queryParameter`, "not together with header");
    if (scheme !== "") report(`${field}.scheme`, "not together with queryParameter");
    if (!QUERY_PARAMETER.test(queryParameter)) report(`${field}.queryParameter`, "must be letters, digits and -._~");
    return { kind: "query", parameter: queryParameter, value };
  }
  const name = (placement.header || "authorization").toLowerCase();
  if (!FIELD_NAME.test(name)) report(`${field}.header`, "must be a header name");
  else if (name !== "authorization" && !isCredentialHeader(name)) {
    report(`${field}.header`, "must not be a header that the relay or the connection sets itself");
  }
  if (!SCHEME.test(scheme)) report(`${field}.scheme`, "must be one word, such as Bearer");
  return { kind: "header", name, scheme, value };
}

function isCredentialHeader(name: string): boolean {
  return !isDroppedHeader(name) && name !== "content-type" && name !== "accept";
}

/** Secret values that signatures are made with. */
const SIGNING = ["oauth_token", "oauth_token_secret", "client_secret"];

/** Judges that each place has one credential, and that what it is made of is known. */
export function checkPlaces(
  kind: ConnectionKind,
  places: readonly Credential[],
  values: readonly ConnectionValue[],
  report: Report,
): void {
  const known = new Set([...values.map(({ name }) => name), ...(hasTokens(kind) ? ["access_token"] : [])]);
  if (kind === "jwt_bearer") for (const name of Object.values(KEY_VALUES)) known.delete(name);
  const secret = new Set(["access_token", ...values.flatMap(({ name, isSecret }) => (isSecret ? [name] : []))]);
  places.forEach((place, at) => {
    const field = at === 0 ? "credential" : `furtherCredentials[${at - 1}]`;
    const names = namesIn(place.value);
    const unknown = names.find((name) => !known.has(name));
    if (unknown !== undefined) report(`${field}.value`, `{${unknown}} is no value of a connection`);
    else if (!isTemplate(place.value) || !names.some((name) => secret.has(name))) {
      report(`${field}.value`, "must name a secret value, such as {api_key}");
    }
    if (places.findIndex((other) => placeName(other) === placeName(place)) !== at) report(field, "stands twice");
  });
  const placed = new Set([...places.flatMap((place) => namesIn(place.value)), ...(kind === "oauth1" ? SIGNING : [])]);
  // Token requests have those of the other kinds.
  const left = hasTokens(kind) ? undefined : values.find(({ name, isSecret }) => isSecret && !placed.has(name));
  if (left !== undefined) report("furtherCredentials", `must place the secret value ${left.name}`);
}

function placeName(place: Credential): string {
  return place.kind === "header" ? `${place.name}:` : `?${place.parameter.toLowerCase()}`;
}

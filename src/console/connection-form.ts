import type { ConnectionJson } from "../../gen/relay/admin/v1/connection_pb.js";
import type { ConnectionValueJson, ProviderJson } from "../../gen/relay/admin/v1/provider_pb.js";
import { type Field, userField, type Values } from "./field.js";
import { createForm, type Form, notice } from "./form.js";
import { html } from "./lit-html.js";
import { visibleText } from "./text.js";
import type { ViewContext } from "./view.js";

/** Options of {@link createStoringForm}. */
interface StoringOptions {
  readonly publicKey: () => string;
  readonly onStored: (connection: ConnectionJson) => void;
}

/** A form that stores a user's tokens or keys; its fields depend on the provider's kind. */
export function createStoringForm(context: ViewContext, { publicKey, onStored }: StoringOptions): Form {
  const { directory } = context;
  /** Empty while it is not known. */
  const provider = () => directory.providerOf(storing.values["providerName"] ?? "") ?? {};
  const storing: Form = createForm(context, {
    ...{ id: "connection", method: "ConnectionService/PutConnection", button: "Store the connection" },
    fields: () => [
      userField((text) => directory.findUsers(publicKey(), text)),
      { name: "providerName", label: "Provider", find: directory.findProviders, hint: "Type part of its name." },
      ...valueFields(provider()),
    ],
    requestFrom: (values) => ({
      ...{ publicKey: publicKey(), userId: values["userId"] ?? "", providerName: values["providerName"] ?? "" },
      ...contentFrom(values, provider()),
    }),
    done: (connection) => {
      onStored(connection);
      return notice(`Stored, sealed. Calls for ${visibleText(connection.userId ?? "")} can be made now.`);
    },
  });
  return storing;
}

/** The connection values that the operator enters: those that neither the provider nor the OAuth client supplies. */
function askedValues({ connectionValues = [] }: ProviderJson): readonly ConnectionValueJson[] {
  return connectionValues.filter(
    ({ callbackParameter, tokenMember, lookup, client }) => !(callbackParameter || tokenMember || lookup || client),
  );
}

/** Whether the provider uses keys instead of a token response. */
const isWithoutTokens = ({ kind = "oauth2" }: ProviderJson) => kind !== "oauth2";

function valueFields(provider: ProviderJson): readonly Field[] {
  const values = askedValues(provider).map(fieldOfValue);
  return isWithoutTokens(provider) ? values : [...values, TOKEN_FIELD];
}

const TOKEN_FIELD: Field = {
  ...{ name: "tokenResponse", label: "Token response of the provider", kind: "secret", isWide: true },
  hint: html`JSON: <code>access_token</code> and, if there are any, <code>refresh_token</code>, <code>expires_in</code> and
    <code>scope</code>.`,
};

function fieldOfValue({ name = "", label = "", help = "", secret = false, choices = [] }: ConnectionValueJson): Field {
  return {
    ...{ name: `value.${name}`, label: visibleText(label || name) },
    path: `${secret ? "secrets" : "origin_parameters"}.${name}`,
    ...(help === "" ? {} : { hint: visibleText(help) }),
    ...(secret ? { kind: "secret" } : {}),
    ...(choices.length === 0
      ? {}
      : {
          kind: "choice",
          choices: [["", ""], ...choices.map(({ value = "", label: text }) => [value, text || value] as const)],
        }),
  };
}

function contentFrom(values: Values, provider: ProviderJson) {
  const given = (isSecret: boolean) =>
    Object.fromEntries(
      askedValues(provider)
        .filter(({ secret = false }) => secret === isSecret)
        .map(({ name = "" }) => [name, values[`value.${name}`] ?? ""] as const)
        .filter(([, value]) => value !== ""),
    );
  const tokenResponse = isWithoutTokens(provider) ? "" : (values["tokenResponse"] ?? "");
  return { originParameters: given(false), secrets: given(true), tokenResponse };
}

import type { ConnectionJson } from "../../gen/relay/admin/v1/connection_pb.js";
import type { ConnectionValueJson, ProviderJson } from "../../gen/relay/admin/v1/provider_pb.js";
import { applicationLinks, part } from "./application-view.js";
import { refreshOf, stateOf, valuesOf } from "./connections-view.js";
import { createForm, type Field, type Form, notice, type Values } from "./form.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createLoader } from "./loading.js";
import { visibleText } from "./text.js";
import { type KnownNames, loadKnownNames, providerOf, suggestionLists, tryAddress } from "./try-view.js";
import { busyNotice, moment, problemNotice, step, type View, type ViewContext } from "./view.js";

/** One connection; with nothing but an application in the address, a form for a new one. */
export function createConnectionView(context: ViewContext): View {
  const { api, update } = context;
  const found = createLoader<ConnectionJson>(update);
  const names = createLoader<KnownNames>(update);
  let key = { publicKey: "", userId: "", providerName: "" };

  const isNew = () => key.userId === "" || key.providerName === "";
  const provider = () => providerOf(names.value, storing.values["providerName"] ?? "");

  async function load(): Promise<void> {
    if (!isNew()) await found.load(() => api.call("ConnectionService/GetConnection", key));
  }

  const storing: Form = createForm(context, {
    ...{ id: "connection", method: "ConnectionService/PutConnection", button: "Store the connection" },
    fields: () => [...KEY_FIELDS, ...valueFields(provider())],
    requestFrom: (values) => ({
      ...{ publicKey: key.publicKey, userId: values["userId"] ?? "", providerName: values["providerName"] ?? "" },
      ...contentFrom(values, provider()),
    }),
    done: (connection) => {
      const { userId = "", providerName = "" } = connection;
      key = { ...key, userId, providerName };
      void load();
      return notice(`Stored, sealed. Calls of ${visibleText(userId)} can be made now.`);
    },
  });

  const removal = createForm(context, {
    ...{ id: "remove-connection", method: "ConnectionService/DeleteConnection", button: "Delete the connection" },
    ...{ sure: "Calls for this user end now; the user must connect again", isLast: true },
    fields: () => [{ name: "skipRevocation", label: "Do not tell the provider", kind: "flag" }],
    requestFrom: ({ skipRevocation }) => ({ ...key, skipRevocation: skipRevocation === "yes" }),
    done: ({ revocation = "" }) => notice(`Deleted the connection. ${WHAT_BECAME[revocation] ?? ""}`),
  });

  function forget(): void {
    for (const each of [storing, removal, found]) each.clear();
  }

  return {
    title: "Connection",
    enter(parameters) {
      forget();
      const text = (name: string) => parameters.get(name) ?? "";
      key = { publicKey: text("publicKey"), userId: text("userId"), providerName: text("providerName") };
      storing.fill({ userId: key.userId, providerName: key.providerName });
      void names.load(() => loadKnownNames(api));
      void load();
    },
    leave: forget,
    render: () => html`<h1 tabindex="-1">Connection</h1>
      ${applicationLinks(key.publicKey, "connection")} ${problemNotice(found)} ${busyNotice(found)}
      ${found.value === undefined || removal.isOver ? nothing : detailsOf(found.value)}
      ${part(isNew() ? "Store tokens or keys" : "Store new tokens or keys", "A connection that exists gets the new ones and starts afresh.", storing)}
      ${found.value === undefined ? nothing : part("Delete", "Its tokens are deleted here, and revoked at a provider that can.", removal)}
      ${suggestionLists(names.value)}`,
  };
}

const WHAT_BECAME: Readonly<Record<string, string>> = {
  REVOCATION_REVOKED: "Its token is revoked at the provider.",
  REVOCATION_NOT_SUPPORTED: "The provider cannot revoke its token; remove the access in the account there.",
  REVOCATION_FAILED: "Its token could not be revoked at the provider; remove the access in the account there.",
  REVOCATION_SKIPPED: "The provider was not told.",
};

const KEY_FIELDS: readonly Field[] = [
  { name: "userId", label: "User id", path: "user_id", hint: "Calls must name it exactly so." },
  { name: "providerName", label: "Provider", path: "provider_name", list: "known-providers" },
];

/** Those that are not told by the provider or fixed with the client. */
function askedValues({ connectionValues = [] }: ProviderJson): readonly ConnectionValueJson[] {
  return connectionValues.filter(
    ({ callbackParameter, tokenMember, lookup, client }) => !(callbackParameter || tokenMember || lookup || client),
  );
}

/** Whether what is stored is no token response. */
const isWithoutTokens = ({ kind = "oauth2" }: ProviderJson) => kind !== "oauth2";

function valueFields(provider: ProviderJson | undefined): readonly Field[] {
  const values = (provider === undefined ? [] : askedValues(provider)).map(fieldOfValue);
  return provider !== undefined && isWithoutTokens(provider) ? values : [...values, TOKEN_FIELD];
}

const TOKEN_FIELD: Field = {
  ...{ name: "tokenResponse", label: "Token response of the provider", kind: "secret", path: "token_response" },
  isWide: true,
  hint: html`JSON: <code>access_token</code>, and where there are any <code>refresh_token</code>, <code>expires_in</code>,
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

function contentFrom(values: Values, provider: ProviderJson | undefined) {
  const asked = provider === undefined ? [] : askedValues(provider);
  const given = (isSecret: boolean) =>
    Object.fromEntries(
      asked
        .filter(({ secret = false }) => secret === isSecret)
        .map(({ name = "" }) => [name, values[`value.${name}`] ?? ""] as const)
        .filter(([, value]) => value !== ""),
    );
  const withoutTokens = provider !== undefined && isWithoutTokens(provider);
  return {
    originParameters: given(false),
    secrets: given(true),
    tokenResponse: withoutTokens ? "" : (values["tokenResponse"] ?? ""),
  };
}

function detailsOf(connection: ConnectionJson): TemplateResult {
  const { publicKey = "", userId = "", providerName = "", scope = "", createTime, updateTime, expireTime } = connection;
  return html`<dl class="steps">
      ${step("User", html`<bdi class="id">${visibleText(userId)}</bdi>`)} ${step("Provider", visibleText(providerName))}
      ${step("State", stateOf(connection))} ${step("Token ends", moment(expireTime, "not known"))}
      ${step("Refresh", refreshOf(connection))} ${step("Scope", visibleText(scope || "not known"))}
      ${step("Values", valuesOf(connection))} ${step("Connected", moment(createTime, ""))}
      ${step("Changed", moment(updateTime, ""))}
    </dl>
    <p><a href=${tryAddress({ publicKey, userId, providerName })}>Try a call</a></p>`;
}

import type { OAuthClientJson } from "../../gen/relay/admin/v1/oauth_client_pb.js";
import type { ProviderJson } from "../../gen/relay/admin/v1/provider_pb.js";
import type { Api } from "./api.js";
import { applicationLinks, part } from "./application-view.js";
import type { Directory } from "./directory.js";
import { type Field, fieldsWithin, type Values } from "./field.js";
import { changeMask, createForm, type Form, notice } from "./form.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { allPages, createLoader } from "./loading.js";
import { addressOf, pairsFrom, visibleText } from "./text.js";
import {
  answerView,
  type Column,
  copyButton,
  dataTable,
  lasting,
  moment,
  stateMark,
  type View,
  type ViewContext,
} from "./view.js";

/** OAuth clients of one application. A provider in the address selects its client. */
export function createClientsView(context: ViewContext): View {
  const { api, directory, session, update } = context;
  const found = createLoader<readonly OAuthClientJson[]>(update);
  let publicKey = "";
  let chosen = "";

  const clientAt = (name = "") => {
    const known = directory.providerOf(name)?.name ?? name;
    return found.value?.find(({ providerName }) => providerName === known);
  };
  const clientsBut = (name: string) => (found.value ?? []).filter((each) => each !== clientAt(name));

  const storing: Form = createForm(context, {
    ...{ id: "client", method: "OAuthClientService/UpdateOAuthClient", button: "Store the client" },
    fields: () => clientFields(clientAt(storing.values["providerName"]), directory),
    stored: () => ({ providerName: chosen, ...valuesFromClient(clientAt(chosen)) }),
    requestFrom: (values, stored) => {
      const { providerName } = values;
      const client = clientAt(providerName);
      // A client that was deleted here is stored as a new one.
      const isKnown = client !== undefined && providerName === stored["providerName"];
      const known = isKnown ? stored : valuesFromClient(client);
      const forgets = client?.hasClientSecret === true && values["isPublic"] === "yes";
      return {
        oauthClient: { ...clientFromValues(values), publicKey, etag: known["etag"] ?? "" },
        updateMask: maskOf(values, known, forgets),
        allowMissing: true,
      };
    },
    done: (client) => {
      const { providerName = "" } = client;
      chosen = providerName;
      removal.clear();
      void found.load(async () => [...clientsBut(providerName), client]);
      const address = addressOf("link", { publicKey, providerName });
      return notice(html`Stored the client for ${visibleText(providerName)}. Its secret is sealed. Next:
        <a href=${address}>make a connect link for a user</a>.`);
    },
  });

  const removal = createForm(context, {
    ...{ id: "remove-client", method: "OAuthClientService/DeleteOAuthClient", button: "Delete the client" },
    sure: "Tokens of its users can then no longer be refreshed",
    requestFrom: () => ({ publicKey, providerName: chosen }),
    isLast: true,
    done: () => {
      void found.load(async () => clientsBut(chosen));
      return notice("Deleted the client.");
    },
  });

  return {
    title: "OAuth clients",
    enter(parameters) {
      publicKey = parameters.get("publicKey") ?? "";
      chosen = parameters.get("providerName") ?? "";
      void found.load(() => allClients(api, publicKey));
    },
    leave() {
      for (const each of [storing, removal, found]) each.clear();
    },
    render: () => html`<h1 tabindex="-1">OAuth clients</h1>
      ${applicationLinks(context, publicKey, "clients")} ${answerView(found, listOf)}
      ${
        found.value === undefined
          ? nothing
          : part(
              "Store a client",
              registration(session.relayUrl, directory.providerOf(storing.values["providerName"] ?? "")),
              storing,
            )
      }
      ${clientAt(chosen) === undefined && !removal.isOver ? nothing : part(`Delete the client at ${visibleText(chosen)}`, nothing, removal)}`,
  };
}

async function allClients(api: Api, publicKey: string): Promise<readonly OAuthClientJson[]> {
  const pages = await allPages((page) => api.call("OAuthClientService/ListOAuthClients", { publicKey, ...page }));
  return pages.flatMap(({ oauthClients = [] }) => oauthClients);
}

/** The scope separator depends on the provider: a space for most, a comma for some (Slack, Strava). */
const SCOPE_HINT =
  "What calls may do, in the provider's own scope names and with its separator: a space for most (repo read:user), a comma for some such as Slack (chat:write,users:read). Empty: the scope in the provider's definition.";

function clientFields(stored: OAuthClientJson | undefined, { findProviders }: Directory): readonly Field[] {
  const kept = stored?.hasClientSecret
    ? "Leave empty to keep the stored one."
    : "It is stored sealed and never shown again.";
  return fieldsWithin("oauth_client", [
    { name: "providerName", label: "Provider", find: findProviders, hint: "Type part of its name." },
    { name: "clientId", label: "Client id", hint: "The provider shows it where you registered the client." },
    { name: "clientSecret", label: "Client secret", kind: "secret", hint: kept },
    { name: "scope", label: "Scope to ask users for", hint: SCOPE_HINT },
    {
      ...{ name: "originParameters", label: "Customers that this client is for", kind: "lines" },
      hint: "One name=value per line, such as subdomain=acme, for a provider that gives each customer its own address. Empty: all customers.",
    },
    ...(stored?.hasClientSecret
      ? [{ name: "isPublic", label: "Remove the stored secret (public client)", kind: "flag" } as const]
      : []),
  ]);
}

/** Form values of a client, and its etag; none without a client. */
function valuesFromClient(client: OAuthClientJson | undefined): Values {
  if (client === undefined) return {};
  const { providerName = "", clientId = "", scope = "", originParameters = {}, etag = "" } = client;
  const parameters = Object.entries(originParameters).map(([name, value]) => `${name}=${value}`);
  return { providerName, clientId, scope, originParameters: parameters.join("\n"), etag };
}

function clientFromValues(values: Values): OAuthClientJson {
  const { providerName = "", clientId = "", clientSecret = "", scope = "" } = values;
  const originParameters = pairsFrom(
    values["originParameters"],
    "=",
    "oauth_client.origin_parameters",
    "subdomain=acme",
  );
  return { providerName, clientId, clientSecret, scope, originParameters };
}

/**
 * Update mask. An empty secret field keeps the stored secret, even when the client has not been loaded yet, unless the
 * operator ticked the box to remove it.
 */
function maskOf(values: Values, { clientId, scope, originParameters, etag }: Values, forgets: boolean): string {
  const secret = values["clientSecret"] || forgets ? ["clientSecret"] : [];
  if (etag === undefined) return ["clientId", "scope", "originParameters", ...secret].join();
  return changeMask(values, { clientId, scope, originParameters } as Values, secret);
}

/** Instructions for registering the client at the provider. */
function registration(relayUrl: string, provider: ProviderJson | undefined): TemplateResult {
  const { displayName = "", documentationUri = "", sources = [] } = provider ?? {};
  // Only https: a definition may contain any text, and a javascript: URL would run.
  const pages = [...new Set([...sources, documentationUri])].filter((uri) => uri.startsWith("https://"));
  const uri = `${relayUrl}/oauth/callback`;
  return html`Register a client at the provider first, with this redirect address:
    <span class="id" id="redirect-uri">${uri}</span> ${copyButton("Copy the redirect address", uri, "redirect-uri")}
    ${
      pages.length === 0
        ? nothing
        : html`<br />${visibleText(displayName)}'s documentation on this:
            ${pages.map((page) => html`<a href=${page} target="_blank" rel="noreferrer">${visibleText(new URL(page).host + new URL(page).pathname)}</a> `)}`
    }`;
}

function listOf(clients: readonly OAuthClientJson[]): TemplateResult {
  if (clients.length === 0)
    return html`<p>The application has no OAuth client yet: no user can connect in a browser.</p>`;
  return dataTable("OAuth clients", COLUMNS, clients);
}

const COLUMNS: ReadonlyArray<Column<OAuthClientJson>> = [
  { label: "Provider", cell: ({ providerName = "" }) => visibleText(providerName) },
  { label: "Client id", cell: ({ clientId = "" }) => html`<bdi class="id">${visibleText(clientId)}</bdi>` },
  { label: "Secret", cell: ({ hasClientSecret }) => (hasClientSecret ? "stored" : "none") },
  { label: "Scope", cell: ({ scope = "" }) => visibleText(scope || "default") },
  { label: "State", cell: stateOf },
  { label: "Changed", cell: ({ updateTime }) => moment(updateTime, "") },
  { label: "More", cell: editLink },
];

function stateOf({ refusedTime }: OAuthClientJson): TemplateResult {
  if (refusedTime === undefined) return stateMark(true, "Not refused");
  return html`${stateMark(false, "Refused by the provider")} ${lasting(refusedTime)}`;
}

function editLink({ publicKey = "", providerName = "" }: OAuthClientJson): TemplateResult {
  const address = addressOf("clients", { publicKey, providerName });
  return html`<a href=${address} aria-label="Change or delete the client at ${visibleText(providerName)}">Change</a>`;
}

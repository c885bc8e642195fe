import type { ApplicationJson, ListApplicationsResponseJson } from "../../gen/relay/admin/v1/application_pb.js";
import type { OAuthClientJson } from "../../gen/relay/admin/v1/oauth_client_pb.js";
import type { Api } from "./api.js";
import {
  APPLICATION_FIELDS,
  applicationFromValues,
  NEW_APPLICATION,
  PROOFS,
  privateKeyView,
} from "./application-form.js";
import type { Field } from "./field.js";
import { createForm } from "./form.js";
import { html, type TemplateResult } from "./lit-html.js";
import { createPagedList } from "./loading.js";
import { addressOf, visibleText } from "./text.js";
import { type Column, dataTable, pageView, stateMark, type View, type ViewContext } from "./view.js";

const PAGE_SIZE = 25;

/** Applications, with the providers at which each has an OAuth client. */
export function createApplicationsView(context: ViewContext): View {
  const { api, update } = context;
  /** What `findProviders()` has found, by public key. */
  const providers = new Map<string, string>();
  const providersOf = (publicKey: string) => providers.get(publicKey) ?? "…";
  /** There was no application when the view was opened: the form to create one is open and stays open. */
  let isFirst = false;

  const found = createPagedList(update, async (pageToken, isWanted) => {
    const page = await api.call("ApplicationService/ListApplications", { pageSize: PAGE_SIZE, pageToken });
    const { applications = [] } = page;
    isFirst ||= pageToken === "" && applications.length === 0;
    context.directory.note(applications);
    void loadProviders(applications, isWanted);
    return page;
  });

  /** One application after another. Never rejects. */
  async function loadProviders(applications: readonly ApplicationJson[], isWanted: () => boolean): Promise<void> {
    for (const { publicKey = "" } of applications) {
      if (!isWanted()) return;
      providers.set(publicKey, await findProviders(api, publicKey).catch(() => "unknown"));
      update();
    }
  }

  const creation = createForm(context, {
    ...{ id: "creation", method: "ApplicationService/CreateApplication", button: "Create the application" },
    fields: () => CREATION_FIELDS,
    requestFrom: (values) => ({
      application: { ...applicationFromValues(values), publicKey: values["publicKey"] ?? "" },
    }),
    done: ({ application: { publicKey = "" } = {}, privateKey = "" }) => {
      void found.reload();
      return createdView(publicKey, privateKey);
    },
  });

  return {
    title: "Applications",
    enter() {
      isFirst = false;
      creation.fill(NEW_APPLICATION);
      void found.open();
    },
    leave() {
      creation.clear();
      found.clear();
    },
    render: () => html`<h1 tabindex="-1">Applications</h1>
      <details class="new" ?open=${isFirst}>
        <summary>New application</summary>
        <p class="hint">Only the name is needed; the rest can be changed later.</p>
        ${creation.render()}
      </details>
      ${pageView(found, (page) => listOf(page, providersOf))}`,
  };
}

const CREATION_FIELDS: readonly Field[] = [
  ...APPLICATION_FIELDS,
  {
    ...{ name: "publicKey", label: "Public key, if clients have one already", path: "application.public_key" },
    hint: "8 to 256 characters. Empty: one is generated.",
  },
];

function createdView(publicKey: string, privateKey: string): TemplateResult {
  return html`<p class="notice">
      Created. Its public key is <span class="id">${visibleText(publicKey)}</span>; every call carries it, and it is not
      secret. Next: <a href=${addressOf("clients", { publicKey })}>enter an OAuth client</a>, with which its users
      connect to a provider, or <a href=${addressOf("application", { publicKey })}>go to its settings</a>.
    </p>
    ${privateKeyView("created-private-key", privateKey)}`;
}

type ProvidersOf = (publicKey: string) => string;

function listOf({ applications = [] }: ListApplicationsResponseJson, providersOf: ProvidersOf): TemplateResult {
  if (applications.length > 0) return dataTable("Applications", columnsFor(providersOf), applications);
  return html`<p>There is no application yet. Create one above.</p>`;
}

function columnsFor(providersOf: ProvidersOf): ReadonlyArray<Column<ApplicationJson>> {
  return [
    {
      label: "Name",
      cell: ({ publicKey = "", displayName = "" }) =>
        html`<a href=${addressOf("application", { publicKey })}><bdi>${visibleText(displayName)}</bdi></a>`,
    },
    { label: "Public key", cell: ({ publicKey = "" }) => html`<span class="id">${visibleText(publicKey)}</span>` },
    {
      label: "State",
      cell: ({ state }) => (state === "STATE_DISABLED" ? stateMark(false, "Disabled") : stateMark(true, "Active")),
    },
    { label: "A call must carry", cell: ({ callerAuth }) => PROOF_NAMES.get(callerAuth ?? "") ?? "" },
    {
      ...{ label: "Providers with rules", isDetail: true },
      cell: ({ callRules = [] }) =>
        listText(
          callRules.map(({ providerName = "" }) => providerName),
          "none",
        ),
    },
    { label: "Browser origins", cell: ({ allowedOrigins = [] }) => listText(allowedOrigins, "none"), isDetail: true },
    { label: "Providers with a client", cell: ({ publicKey = "" }) => visibleText(providersOf(publicKey)) },
    { label: "More", cell: links },
  ];
}

const PROOF_NAMES: ReadonlyMap<string, string> = new Map(PROOFS);

function listText(items: readonly string[], otherwise: string): string {
  return items.length === 0 ? otherwise : items.map(visibleText).join(", ");
}

function links({ publicKey = "", displayName = "" }: ApplicationJson): TemplateResult {
  const name = visibleText(displayName);
  return html`<a href=${addressOf("connections", { publicKey })} aria-label="Connections of ${name}">Connections</a>
    <a href=${addressOf("try", { publicKey })} aria-label="Try a call of ${name}">Try</a>`;
}

/** Providers listed for one application; the text says when there are more. */
const MAX_PROVIDERS = 20;

/** The providers at which an application has an OAuth client, as text. */
async function findProviders(api: Api, publicKey: string): Promise<string> {
  const request = { publicKey, pageSize: MAX_PROVIDERS };
  const { oauthClients = [], nextPageToken } = await api.call("OAuthClientService/ListOAuthClients", request);
  const names = oauthClients.map(nameOf).join(", ");
  return names === "" ? "none" : `${names}${nextPageToken ? " and more" : ""}`;
}

function nameOf({ providerName = "", refusedTime }: OAuthClientJson): string {
  return refusedTime === undefined ? providerName : `${providerName} (has refused the client since ${refusedTime})`;
}

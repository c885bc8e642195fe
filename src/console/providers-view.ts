import type { ProviderEntryJson } from "../../gen/relay/admin/v1/provider_service_pb.js";
import { allProviders, documentationLink } from "./directory.js";
import { html, type TemplateResult } from "./lit-html.js";
import { createLoader } from "./loading.js";
import { countText, visibleText } from "./text.js";
import { answerView, type Column, dataTable, type View, type ViewContext } from "./view.js";

/** The relay's providers, filtered while typing. */
export function createProvidersView({ api, update }: ViewContext): View {
  const found = createLoader<readonly ProviderEntryJson[]>(update);
  let wanted = "";

  function narrow(event: InputEvent): void {
    wanted = (event.currentTarget as HTMLInputElement).value;
    update();
  }

  return {
    title: "Providers",
    enter() {
      void found.load(() => allProviders(api));
    },
    leave: found.clear,
    render: () =>
      html`<h1 tabindex="-1">Providers</h1>
        <form class="filter" role="search" aria-label="Providers" @submit=${(event: Event) => event.preventDefault()}>
          <p>
            <label for="wanted">Name or origin contains</label>
            <input id="wanted" .value=${wanted} @input=${narrow} autocomplete="off" spellcheck="false" />
          </p>
        </form>
        ${answerView(found, (entries) => listOf(entries, wanted.trim().toLowerCase()))}`,
  };
}

function listOf(entries: readonly ProviderEntryJson[], wanted: string): TemplateResult {
  const rows = entries.filter((entry) => isWanted(entry, wanted));
  return html`<p role="status">${countText(rows.length, "provider")}</p>${dataTable("Providers", COLUMNS, rows)}`;
}

function isWanted({ provider }: ProviderEntryJson, wanted: string): boolean {
  const { name = "", displayName = "", kind = "", aliases = [], apiOrigins = [] } = provider ?? {};
  return [name, displayName, kind, ...aliases, ...apiOrigins].some((text) => text.toLowerCase().includes(wanted));
}

const COLUMNS: ReadonlyArray<Column<ProviderEntryJson>> = [
  { label: "Name", cell: ({ provider }) => html`<span class="name">${visibleText(provider?.name ?? "")}</span>` },
  { label: "Provider", cell: ({ provider }) => html`<bdi>${visibleText(provider?.displayName ?? "")}</bdi>` },
  {
    label: "API origins",
    cell: ({ provider }) => html`<span class="id">${visibleText((provider?.apiOrigins ?? []).join(", "))}</span>`,
  },
  { label: "Kind", cell: ({ provider }) => visibleText(provider?.kind ?? "") },
  { label: "Definition", cell: sourceOf, isDetail: true },
  { label: "Documentation", cell: ({ provider }) => documentationLink(provider) },
];

function sourceOf({ source, file = "" }: ProviderEntryJson): string {
  return source === "SOURCE_FILE" ? visibleText(file) : "Catalogue";
}

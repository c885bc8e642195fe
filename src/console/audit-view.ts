import type { AuditRecordJson, ListAuditRecordsResponseJson } from "../../gen/relay/admin/v1/audit_pb.js";
import { searched } from "./form.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { ApiError, createLoader, createPages } from "./loading.js";
import { visibleText } from "./text.js";
import { type KnownNames, loadKnownNames, suggestionLists } from "./try-view.js";
import {
  busyNotice,
  type Column,
  dataTable,
  moment,
  pager,
  problemNotice,
  stateMark,
  type View,
  type ViewContext,
} from "./view.js";

const PAGE_SIZE = 50;

/** What operators have changed, the newest first. */
export function createAuditView({ api, update }: ViewContext): View {
  const found = createLoader<ListAuditRecordsResponseJson>(update);
  const names = createLoader<KnownNames>(update);
  const pages = createPages();
  let filter = { publicKey: "", before: "" };

  async function load(): Promise<void> {
    await found.load(async () => {
      const { publicKey, before } = filter;
      const beforeTime = before === "" ? {} : { beforeTime: timeFrom(before) };
      const request = { publicKey, ...beforeTime, pageSize: PAGE_SIZE, pageToken: pages.token };
      return api.call("AuditService/ListAuditRecords", request);
    });
    pages.noteNext(found.value?.nextPageToken);
    update();
  }

  function show(parameters: URLSearchParams): void {
    filter = { publicKey: parameters.get("publicKey") ?? "", before: parameters.get("before") ?? "" };
    pages.reset();
    void load();
  }

  return {
    title: "Audit trail",
    enter(parameters) {
      show(parameters);
      void names.load(() => loadKnownNames(api));
    },
    leave() {},
    render: () => html`<h1 tabindex="-1">Audit trail</h1>
      <form class="filter" role="search" aria-label="Audit trail" @submit=${(event: SubmitEvent) => show(searched(event))}>
        <label
          >Application's public key<input name="publicKey" list="known-applications" .value=${filter.publicKey}
            autocomplete="off" spellcheck="false"
        /></label>
        <label
          >Before<input name="before" type="datetime-local" step="1" .value=${filter.before}
        /></label>
        <button type="submit" class="main">Search</button>
      </form>
      ${suggestionLists(names.value)} ${problemNotice(found)}
      ${found.value === undefined ? nothing : listOf(found.value)} ${busyNotice(found)}
      ${found.value === undefined ? nothing : pager(pages, found.isBusy, () => void load())}`,
  };
}

/** A moment of the browser's own time zone. */
function timeFrom(text: string): string {
  const time = new Date(text);
  if (!Number.isNaN(time.getTime())) return time.toISOString();
  throw new ApiError("invalid_argument", "The time must be a date and a time of day.");
}

function listOf({ auditRecords = [] }: ListAuditRecordsResponseJson): TemplateResult {
  if (auditRecords.length === 0) return html`<p>There is no record of that.</p>`;
  return dataTable("Audit trail", COLUMNS, auditRecords);
}

const COLUMNS: ReadonlyArray<Column<AuditRecordJson>> = [
  { label: "When", cell: ({ createTime }) => moment(createTime, "") },
  { label: "Who", cell: ({ actor = "" }) => html`<bdi>${visibleText(actor)}</bdi>` },
  { label: "What", cell: ({ method = "" }) => visibleText(method.replace("relay.admin.v1.", "")) },
  { label: "On what", cell: ({ resource = "" }) => html`<span class="id">${visibleText(resource)}</span>` },
  { label: "Fields", cell: ({ changedFields = [] }) => visibleText(changedFields.join(", ")) },
  {
    label: "Outcome",
    cell: ({ outcome }) => (outcome === "OUTCOME_REFUSED" ? stateMark(false, "Refused") : stateMark(true, "Done")),
  },
];

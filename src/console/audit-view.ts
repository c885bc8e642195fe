import type { AuditRecordJson, ListAuditRecordsResponseJson } from "../../gen/relay/admin/v1/audit_pb.js";
import { applicationLink, type Directory } from "./directory.js";
import { html, type TemplateResult } from "./lit-html.js";
import { createPagedList } from "./loading.js";
import { createSearchForm, type SearchField } from "./search-form.js";
import { timeMember, visibleText } from "./text.js";
import { type Column, dataTable, moment, pageView, stateMark, type View, type ViewContext } from "./view.js";

const PAGE_SIZE = 50;

type Name = "publicKey" | "before";

const FIELDS: ReadonlyArray<SearchField<Name>> = [
  { name: "publicKey", label: "Application", kind: "application" },
  { name: "before", label: "Before", kind: "time" },
];

/** Changes made by operators, newest first. */
export function createAuditView(context: ViewContext): View {
  const { api, directory, update } = context;
  const search = createSearchForm(context, { view: "audit", label: "Audit trail", fields: FIELDS });
  let sought = search.enter(new URLSearchParams());

  const found = createPagedList(update, (pageToken) => {
    const { publicKey, before } = sought;
    const request = { publicKey, ...timeMember("beforeTime", before), pageSize: PAGE_SIZE, pageToken };
    return api.call("AuditService/ListAuditRecords", request);
  });

  const isNarrowed = () => Object.values(sought).some((value) => value !== "");

  return {
    title: "Audit trail",
    staysInPlace: true,
    enter(parameters) {
      sought = search.enter(parameters);
      void found.open();
    },
    leave: found.clear,
    render: () => html`<h1 tabindex="-1">Audit trail</h1>
      ${search.render()} ${pageView(found, (page) => listOf(page, isNarrowed(), directory))}`,
  };
}

function listOf(
  { auditRecords = [] }: ListAuditRecordsResponseJson,
  isNarrowed: boolean,
  directory: Directory,
): TemplateResult {
  if (auditRecords.length === 0)
    return html`<p>${isNarrowed ? "There is no record of that." : "No changes yet. Changes by operators appear here."}</p>`;
  return dataTable("Audit trail", columnsFor(directory), auditRecords);
}

const columnsFor = (directory: Directory): ReadonlyArray<Column<AuditRecordJson>> => [
  { label: "When", cell: ({ createTime }) => moment(createTime, "") },
  { label: "Who", cell: ({ actor = "" }) => html`<bdi>${visibleText(actor)}</bdi>` },
  { label: "What", cell: ({ method = "" }) => visibleText(method.replace("relay.admin.v1.", "")) },
  { label: "Application", cell: ({ resource = "" }) => applicationOf(resource, directory) },
  { label: "Resource", cell: ({ resource = "" }) => html`<span class="id">${visibleText(resource)}</span>` },
  { label: "Fields", cell: ({ changedFields = [] }) => visibleText(changedFields.join(", ")) },
  {
    label: "Outcome",
    cell: ({ outcome }) => (outcome === "OUTCOME_REFUSED" ? stateMark(false, "Refused") : stateMark(true, "Done")),
  },
];

/** The second segment of a resource name is the application's public key, percent-encoded. */
function applicationOf(resource: string, directory: Directory): TemplateResult | string {
  const [, publicKey = ""] = /^applications\/([^/]+)/.exec(resource) ?? [];
  try {
    return publicKey === "" ? "" : applicationLink(directory, decodeURIComponent(publicKey));
  } catch {
    // Not encoded by the relay; the table shows the resource name as well.
    return "";
  }
}

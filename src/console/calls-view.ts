import type { ListCallRecordsResponseJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import { recordTable } from "./call-tables.js";
import { html, type TemplateResult } from "./lit-html.js";
import { createPagedList } from "./loading.js";
import { createSearchForm, requireApplication, type SearchField, type Sought } from "./search-form.js";
import { timeMember } from "./text.js";
import { pageView, type View, type ViewContext } from "./view.js";

type Name = "publicKey" | "userId" | "providerName" | "errorType" | "requestId" | "from" | "until";

const FIELDS: ReadonlyArray<SearchField<Name>> = [
  { name: "publicKey", label: "Application", kind: "application" },
  { name: "userId", label: "User id", kind: "user" },
  { name: "providerName", label: "Provider", kind: "provider" },
  { name: "errorType", label: "Error type", kind: "errorType" },
  { name: "requestId", label: "Request id" },
  { name: "from", label: "From", kind: "time" },
  { name: "until", label: "Until", kind: "time" },
];

const PAGE_SIZE = 50;

/** Search in the recorded calls, by application, user, provider, outcome and time. */
export function createCallsView(context: ViewContext): View {
  const { api, update } = context;
  const search = createSearchForm(context, { view: "calls", label: "Recorded calls", fields: FIELDS });
  let sought = search.enter(new URLSearchParams());

  const found = createPagedList(update, async (pageToken) => {
    requireApplication(sought.userId, sought);
    const request = { ...requestFrom(sought), pageSize: PAGE_SIZE, pageToken };
    return api.call("CallRecordService/ListCallRecords", request);
  });

  return {
    title: "Recorded calls",
    staysInPlace: true,
    enter(parameters) {
      sought = search.enter(parameters);
      void found.open();
    },
    leave: found.clear,
    render: () => html`<h1 tabindex="-1">Recorded calls</h1>
      ${search.render()} ${pageView(found, (page) => listOf(page, sought.userId))}`,
  };
}

function requestFrom({ from, until, ...filter }: Sought<Name>) {
  return { ...filter, ...timeMember("startTime", from), ...timeMember("endTime", until) };
}

function listOf({ callRecords = [], nextPageToken = "" }: ListCallRecordsResponseJson, userId: string): TemplateResult {
  if (callRecords.length > 0) return recordTable("Recorded calls", callRecords, userId);
  if (nextPageToken !== "") return html`<p>None on this page; later pages may have some.</p>`;
  return html`<p>No such call is recorded. Only the newest records of each application are kept, for some days.</p>`;
}

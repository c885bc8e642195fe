import type {
  ListWebhookDeliveriesRequestJson,
  ListWebhookDeliveriesResponseJson,
  WebhookDeliveryJson,
} from "../../gen/relay/admin/v1/webhook_pb.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { askUntil, createLoader } from "./loading.js";
import { visibleText } from "./text.js";
import { answerView, type Column, dataTable, moment, stateMark, type ViewContext } from "./view.js";

/** Delivery log of an application's webhook events, or of those about one connection. */
export interface Deliveries {
  load(filter: ListWebhookDeliveriesRequestJson): Promise<void>;
  /** Polls once a second until the event has been attempted, for up to 20 seconds; the relay delivers once a second. */
  watch(filter: ListWebhookDeliveriesRequestJson, eventId: string): Promise<void>;
  clear(): void;
  render(): TemplateResult;
}

const ROWS = 20;
const MAX_ASKS = 20;

/** Empty until it is loaded. */
export function createDeliveries({ api, update }: ViewContext): Deliveries {
  const found = createLoader<ListWebhookDeliveriesResponseJson>(update);
  const ask = (filter: ListWebhookDeliveriesRequestJson) =>
    api.call("WebhookService/ListWebhookDeliveries", { ...filter, pageSize: ROWS });

  return {
    load: (filter) => found.load(() => ask(filter)),
    watch: (filter, eventId) =>
      found.load((isWanted) =>
        askUntil(
          MAX_ASKS,
          () => ask(filter),
          ({ webhookDeliveries = [] }) => !isWanted() || webhookDeliveries.some((each) => each.eventId === eventId),
        ),
      ),
    clear: found.clear,
    render: () => answerView(found, listOf),
  };
}

function listOf({ webhookDeliveries = [] }: ListWebhookDeliveriesResponseJson): TemplateResult {
  if (webhookDeliveries.length === 0) return html`<p>No event was sent in the last week.</p>`;
  return dataTable("Last events", COLUMNS, webhookDeliveries);
}

const COLUMNS: ReadonlyArray<Column<WebhookDeliveryJson>> = [
  { label: "Happened", cell: ({ createTime }) => moment(createTime, "") },
  { label: "Event", cell: ({ type = "" }) => visibleText(type) },
  { label: "User", cell: ({ userId = "" }) => html`<bdi class="id">${visibleText(userId)}</bdi>` },
  { label: "Provider", cell: ({ providerName = "" }) => visibleText(providerName) },
  { label: "Outcome", cell: outcomeOf },
  { label: "Last try", cell: ({ attemptTime }) => moment(attemptTime, ""), isDetail: true },
  {
    label: "Event id",
    cell: ({ eventId = "" }) => html`<span class="id">${visibleText(eventId)}</span>`,
    isDetail: true,
  },
];

function outcomeOf({ outcome, attemptCount = 0, statusCode }: WebhookDeliveryJson): TemplateResult {
  const answer = statusCode === undefined ? "no answer" : `status ${statusCode}`;
  const tries = attemptCount === 1 ? nothing : html`, ${attemptCount} tries`;
  if (outcome === "OUTCOME_DELIVERED") return html`${stateMark(true, "Delivered")} (${answer}${tries})`;
  const text = outcome === "OUTCOME_GIVEN_UP" ? "Given up" : "Failed; will be tried again";
  return html`${stateMark(false, text)} (${answer}${tries})`;
}

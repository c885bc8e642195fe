import type {
  ListWebhookDeliveriesRequestJson,
  ListWebhookDeliveriesResponseJson,
  WebhookDeliveryJson,
  WebhookJson,
} from "../../gen/relay/admin/v1/webhook_pb.js";
import { applicationLinks, part } from "./application-view.js";
import { createForm, notice, secretView } from "./form.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { ApiError, askUntil, createLoader } from "./loading.js";
import { countText, visibleText } from "./text.js";
import { answerView, type Column, dataTable, moment, stateMark, step, type View, type ViewContext } from "./view.js";

/** The webhook that notifies an application about its connections. */
export function createWebhookView(context: ViewContext): View {
  const { api, update } = context;
  /** Null: the application has no webhook. */
  const found = createLoader<WebhookJson | null>(update);
  let publicKey = "";

  const setting = createForm(context, {
    ...{ id: "webhook", method: "WebhookService/PutWebhook", button: "Set the webhook" },
    fields: () => [
      {
        ...{ name: "uri", label: "Address that events are sent to", path: "webhook.uri", isWide: true },
        hint: "https, on your application's server. Setting it again, even to the same address, creates a new secret.",
      },
    ],
    stored: () => ({ uri: found.value?.uri ?? "" }),
    requestFrom: ({ uri = "" }) => ({ webhook: { publicKey, uri } }),
    done: ({ webhook = {}, secret = "" }) => {
      // A used form shows only its result; the new webhook can be deleted as well.
      removal.clear();
      void found.load(async () => webhook);
      return secretView("webhook-secret", "Signing secret", secret, WHERE);
    },
  });

  const removal = createForm(context, {
    ...{ id: "remove-webhook", method: "WebhookService/DeleteWebhook", button: "Delete the webhook" },
    ...{ sure: "Undelivered events will be deleted", isLast: true },
    requestFrom: () => ({ publicKey }),
    done: () => {
      void found.load(async () => null);
      return notice("Deleted the webhook.");
    },
  });

  const testing = createForm(context, {
    ...{ id: "test-webhook", method: "WebhookService/SendTestEvent", button: "Send a test event" },
    requestFrom: () => ({ publicKey }),
    done: ({ eventId = "" }) => {
      void deliveries.watch({ publicKey }, eventId);
      return notice(html`The event <span class="id">${eventId}</span> is on its way; the result appears below.`);
    },
  });

  const deliveries = createDeliveries(context);

  return {
    title: "Webhook",
    enter(parameters) {
      publicKey = parameters.get("publicKey") ?? "";
      void found.load(() => api.call("WebhookService/GetWebhook", { publicKey }).catch(noneFrom));
      void deliveries.load({ publicKey });
    },
    leave() {
      for (const each of [setting, removal, testing, deliveries, found]) each.clear();
    },
    render: () => html`<h1 tabindex="-1">Webhook</h1>
      ${applicationLinks(context, publicKey, "webhook")} ${answerView(found, stateOf)}
      ${part("Set it", nothing, setting)}
      ${found.value ? part("Try it", "Sends an event of the type webhook.test, like any other event but about no connection.", testing) : nothing}
      <section class="part"><h2>Last events</h2>${deliveries.render()}</section>
      ${found.value || removal.isOver ? part("Delete it", nothing, removal) : nothing}`,
  };
}

const WHERE = html`It belongs on the server that receives the events, next to the code that verifies them (Standard
  Webhooks). Never put it in a browser or a repository. Pending events are signed with it as well.`;

function noneFrom(error: unknown): null {
  if (error instanceof ApiError && error.code === "not_found" && error.message.includes("webhook")) return null;
  throw error;
}

function stateOf(webhook: WebhookJson | null): TemplateResult {
  if (webhook === null) return html`<p>The application has no webhook: it is not notified about its connections.</p>`;
  const { uri = "", updateTime, waitingEventCount = "0", waitingSinceTime } = webhook;
  const pending =
    Number(waitingEventCount) === 0
      ? stateMark(true, "Nothing to deliver")
      : html`${stateMark(false, `${countText(Number(waitingEventCount), "event")} to deliver`)}, the oldest from ${moment(waitingSinceTime, "")}`;
  return html`<dl class="steps">
    ${step("Address", html`<span class="id">${visibleText(uri)}</span>`)} ${step("Set", moment(updateTime, ""))}
    ${step("Pending", pending)}
  </dl>`;
}

const ROWS = 20;
const MAX_ASKS = 20;

/** Delivery log of an application's webhook events, or of those about one connection. Empty until it is loaded. */
export function createDeliveries({ api, update }: ViewContext) {
  const found = createLoader<ListWebhookDeliveriesResponseJson>(update);
  const ask = (filter: ListWebhookDeliveriesRequestJson) =>
    api.call("WebhookService/ListWebhookDeliveries", { ...filter, pageSize: ROWS });

  return {
    load: (filter: ListWebhookDeliveriesRequestJson) => found.load(() => ask(filter)),
    /** Polls once a second until the event has been attempted, for up to 20 seconds; the relay delivers once a second. */
    watch: (filter: ListWebhookDeliveriesRequestJson, eventId: string) =>
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

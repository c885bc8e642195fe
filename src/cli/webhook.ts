import type { Command } from "commander";
import { parseWebhookUri } from "../webhooks/webhook-store.js";
import { applicationOf } from "./application.js";
import {
  addCommand,
  addGroup,
  failure,
  textFields,
  textTable,
  usageError,
  wholeNumber,
  writeNote,
  writeResult,
} from "./command.js";
import { administrationOf, configFromEnvironment, type OpenStore, withStore, withStoreOf } from "./open-store.js";

/** `relay webhook`: the address that receives events about an application's connections. */
export function addWebhook(program: Command): void {
  addGroup(program, {
    usage: "webhook",
    about:
      "Manage an application's webhook: it is notified when a connection is created, deleted, or needs the user again.",
    examples: ["relay webhook show --app PUBLIC_KEY"],
    commands: [addWebhookPut, addWebhookShow, addWebhookTest, addWebhookDeliveries, addWebhookDelete],
  });
}

function addWebhookShow(group: Command): void {
  addCommand(group, {
    usage: "show",
    about: "Show an application's webhook and its pending events. Never prints the secret.",
    examples: ["relay webhook show --app PUBLIC_KEY --json"],
    names: ["app"],
  }).action(show);
}

async function show(options: WebhookOptions): Promise<void> {
  const webhook = await withStore((open) => findWebhook(open, options));
  const { uri, updatedAt, waiting, waitingSince } = webhook;
  const text = textFields([
    ["uri", uri],
    ["updated", updatedAt],
    ["pending events", waitingSince === null ? "none" : `${waiting}, the oldest since ${waitingSince}`],
  ]);
  writeResult(options, webhook, text);
}

/** The webhook as JSON. An allow-list of members, so that the secret can never be among them. */
async function findWebhook(open: OpenStore, options: WebhookOptions) {
  const { webhooks } = open.store;
  const { id: applicationId } = await applicationOf(open.store, options.app);
  const endpoint = await webhooks.findEndpoint(applicationId);
  if (endpoint === undefined) throw noWebhook();
  const { waiting, oldestAt } = await webhooks.backlog(applicationId);
  return {
    uri: endpoint.uri,
    updatedAt: new Date(endpoint.updatedAt).toISOString(),
    waiting,
    waitingSince: oldestAt === undefined ? null : new Date(oldestAt).toISOString(),
  };
}

function addWebhookPut(group: Command): void {
  addCommand(group, {
    usage: "put <uri>",
    about: "Create or replace an application's webhook. Prints the signing secret once.",
    examples: ["relay webhook put --app PUBLIC_KEY https://app.example.com/webhooks/relay"],
    more: `Events are sent to the address with POST, signed as the Standard Webhooks specification says.
Pending events also go to the new address, signed with the new secret.`,
    names: ["app"],
  }).action(put);
}

async function put(text: string, options: WebhookOptions): Promise<void> {
  const config = configFromEnvironment();
  const parsed = parseWebhookUri(text, config);
  if ("problem" in parsed) throw usageError(`The address ${parsed.problem}.`);
  const uri = parsed.value;
  const secret = (await withStoreOf(config, (open) => putEndpoint(open, options, uri))).secret.reveal();
  const fields = [["uri", uri] as const, ["secret", secret] as const];
  writeResult(options, { uri, secret }, textFields(fields));
  if (!options.json) writeNote("Keep the secret now; it cannot be shown again.");
}

async function putEndpoint(open: OpenStore, options: WebhookOptions, uri: string) {
  const { putWebhook } = await import("../admin/webhook-service.js");
  return putWebhook(administrationOf(open), await applicationOf(open.store, options.app), uri);
}

function addWebhookTest(group: Command): void {
  addCommand(group, {
    usage: "test",
    about: "Send an event of the type webhook.test to an application's webhook.",
    examples: ["relay webhook test --app PUBLIC_KEY", "relay webhook deliveries --app PUBLIC_KEY"],
    more: "The running service delivers it after the pending events; 'relay webhook deliveries' shows the result.",
    names: ["app"],
  }).action(test);
}

async function test(options: WebhookOptions): Promise<void> {
  const eventId = await withStore(async (open) => {
    const { sendTestEvent } = await import("../admin/webhook-service.js");
    return sendTestEvent(administrationOf(open), await applicationOf(open.store, options.app));
  });
  if (eventId === undefined) throw noWebhook();
  writeResult(options, { eventId }, eventId);
}

interface DeliveriesOptions extends WebhookOptions {
  readonly user?: string;
  readonly limit: number;
}

function addWebhookDeliveries(group: Command): void {
  addCommand(group, {
    usage: "deliveries",
    about: "List the deliveries of an application's events, newest first. They are kept for a week.",
    examples: ["relay webhook deliveries --app PUBLIC_KEY --user ada --json"],
    names: ["app"],
  })
    .option("--user <id>", "only events about this user")
    .option("--limit <count>", "at most this many", wholeNumber(1, 1000), 50)
    .action(deliveries);
}

const OUTCOMES = { delivered: "DELIVERED", retry: "RETRYING", givenUp: "GIVEN_UP" } as const;

async function deliveries({ app, user: userId, limit, ...options }: DeliveriesOptions): Promise<void> {
  const found = await withStore(async ({ store }) => {
    const { id: applicationId } = await applicationOf(store, app);
    const all = { providerName: undefined, beforePlace: undefined };
    return store.webhooks.listDeliveries({ applicationId, userId, limit, ...all });
  });
  const rows = found.map((each) => ({
    eventId: each.id,
    type: each.type,
    user: each.userId || null,
    provider: each.providerName || null,
    outcome: OUTCOMES[each.kind],
    attempts: each.attempts,
    statusCode: each.statusCode ?? null,
    createdAt: new Date(each.createdAt).toISOString(),
    attemptedAt: new Date(each.at).toISOString(),
  }));
  const lines = rows.map((row) => [
    ...[row.attemptedAt, row.type, row.user ?? "", row.provider ?? "", row.outcome],
    ...[String(row.attempts), String(row.statusCode ?? "no answer")],
  ]);
  const heads = ["LAST TRY", "EVENT", "USER", "PROVIDER", "OUTCOME", "TRIES", "STATUS"];
  writeResult(options, rows, textTable(heads, lines));
}

function addWebhookDelete(group: Command): void {
  addCommand(group, {
    usage: "delete",
    about: "Delete an application's webhook and its pending events.",
    examples: ["relay webhook delete --app PUBLIC_KEY"],
    names: ["app"],
  }).action(deleteNamed);
}

async function deleteNamed(options: WebhookOptions): Promise<void> {
  const isDeleted = await withStore(async (open) => {
    const { deleteWebhook } = await import("../admin/webhook-service.js");
    return deleteWebhook(administrationOf(open), await applicationOf(open.store, options.app));
  });
  if (!isDeleted) throw noWebhook();
  writeResult(options, { deleted: true }, "Deleted the webhook.");
}

/** Options that name a webhook. */
interface WebhookOptions {
  readonly app: string;
  readonly json?: boolean;
}

/** The error for an application without a webhook. */
function noWebhook(): Error {
  return failure("The application has no webhook. 'relay webhook put' creates one.");
}

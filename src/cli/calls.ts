import type { Command } from "commander";
import { type HeaderPairs, namesOf } from "../providers/provider.js";
import { type StoredBlock, type StoredCall, USER_PURPOSE, userText } from "../records/call-block.js";
import type { CaptureContent, CapturedBody } from "../records/call-capture.js";
import { type CallFilter, type CallPosition, findCall, listCalls } from "../records/list-calls.js";
import { applicationOf } from "./application.js";
import {
  addCommand,
  addGroup,
  failure,
  printable,
  textFields,
  textTable,
  wholeNumber,
  writeNote,
  writeResult,
} from "./command.js";
import { loadCatalog, type OpenStore, withStore } from "./open-store.js";

/** `relay calls`: the most recent calls. */
export function addCalls(program: Command): void {
  addGroup(program, {
    usage: "calls",
    about: "Show the last calls of applications: where they went, how they ended, and how long they took.",
    examples: ["relay calls list --app PUBLIC_KEY", "relay calls show CALL_ID"],
    commands: [addCallsList, addCallsShow],
  });
}

interface ListOptions {
  readonly app: string;
  readonly errorType?: string;
  readonly provider?: string;
  readonly user?: string;
  readonly requestId?: string;
  readonly limit: number;
  readonly json?: boolean;
}

function addCallsList(group: Command): void {
  addCommand(group, {
    usage: "list",
    about: "List an application's last calls, newest first. Query values, headers and bodies are not recorded.",
    examples: [
      "relay calls list --app PUBLIC_KEY",
      "relay calls list --app PUBLIC_KEY --error-type API_ERROR --provider github --limit 20 --json",
    ],
    names: ["app"],
  })
    .option("--error-type <type>", "only calls with this error, such as PROVIDER_TIMEOUT")
    .option("--provider <name>", "only calls to this provider, by name or alias")
    .option("--user <id>", "only calls for this user")
    .option("--request-id <id>", "only calls whose caller sent this x-request-id")
    .option("--limit <count>", "at most this many", wholeNumber(1, 100_000), 50)
    .action(list);
}

async function list(options: ListOptions): Promise<void> {
  const calls = await withStore((open) => findCalls(open, options));
  writeResult(options, calls.map(jsonFromCall), tableFromCalls(calls));
}

/** Reads pages until there are enough calls, since a page may be short although there are more. */
async function findCalls(open: OpenStore, options: ListOptions): Promise<StoredCall[]> {
  const { id: applicationId } = await applicationOf(open.store, options.app);
  const { user, provider, errorType, requestId } = options;
  const providers = provider === undefined ? provider : namesOf(await loadCatalog(open.config), provider);
  const users = user === undefined ? user : open.sealer.digests(USER_PURPOSE, userText(applicationId, user));
  const filter: CallFilter = { applicationId, providers, errorType, requestId, users };
  const calls: StoredCall[] = [];
  let from: CallPosition | undefined;
  let unreadable = 0;
  const onUnreadable = ({ count }: StoredBlock) => {
    unreadable += count;
  };
  do {
    const position = { pageSize: options.limit - calls.length, from };
    const page = await listCalls(open.store.calls, filter, position, onUnreadable);
    calls.push(...page.calls);
    from = page.next;
  } while (from !== undefined && calls.length < options.limit);
  if (unreadable > 0)
    writeNote(`${unreadable} records are left out: another version wrote them, or the file is damaged.`);
  return calls;
}

function addCallsShow(group: Command): void {
  addCommand(group, {
    usage: "show <call-id>",
    about: "Show one call by the callId of its answer, with its headers and bodies if they were captured.",
    examples: ["relay calls show CALL_ID"],
    more: "Headers and bodies are captured only while 'relay app capture' is on. Credentials in them are masked.",
  }).action(show);
}

async function show(callId: string, options: { readonly json?: boolean }): Promise<void> {
  const { call, capture } = await withStore((open) => findAll(open, callId));
  const { content, problem } = capture;
  const text = [textFromCall(call), ...(content === undefined ? [] : [textFromCapture(content)])].join("\n\n");
  if (problem !== undefined) writeNote(problem);
  writeResult(options, { ...jsonFromCall(call), capture: content ?? null }, text);
}

async function findAll({ store, sealer }: OpenStore, callId: string) {
  const call = await findCall(store.calls, callId);
  if (call === undefined) {
    throw failure("There is no record of this call. Check the id; only recent calls are kept.");
  }
  const { findCapture } = await import("../records/capture-store.js");
  return { call, capture: await findCapture(store.captures, sealer, callId) };
}

/** A recorded call as JSON. */
function jsonFromCall(call: StoredCall) {
  return {
    callId: call.callId,
    time: new Date(call.startedAt).toISOString(),
    surface: call.surface,
    provider: call.provider ?? null,
    method: call.method ?? null,
    origin: call.origin ?? null,
    path: call.path ?? null,
    queryKeys: call.queryKeys,
    status: call.status,
    errorType: call.errorType ?? null,
    rule: call.rule ?? null,
    cause: call.cause ?? null,
    totalMs: call.totalMs,
    queueMs: call.queueMs ?? null,
    tokenMs: call.tokenMs ?? null,
    providerMs: call.providerMs ?? null,
    requestBytes: call.requestBytes,
    responseBytes: call.responseBytes,
    captured: call.isCaptured,
    requestId: call.requestId ?? null,
  };
}

/** Recorded calls as a table, one per line. */
function tableFromCalls(calls: readonly StoredCall[]): string {
  const rows = calls.map((call) => [
    new Date(call.startedAt).toISOString(),
    call.provider ?? "-",
    call.method ?? "-",
    placeOf(call),
    String(call.status),
    call.errorType ?? "-",
    String(call.totalMs),
    String(call.providerMs ?? "-"),
    call.callId,
  ]);
  return textTable(["TIME", "PROVIDER", "METHOD", "URL", "STATUS", "ERROR", "MS", "PROVIDER MS", "CALL ID"], rows);
}

/** One recorded call as text. */
function textFromCall(call: StoredCall): string {
  const ms = (value: number | undefined) => (value === undefined ? "-" : `${value} ms`);
  return textFields([
    ["call id", call.callId],
    ["time", new Date(call.startedAt).toISOString()],
    ["surface", call.surface],
    ["provider", call.provider ?? "-"],
    ["request", `${call.method ?? "-"} ${placeOf(call)}`],
    ["query keys", call.queryKeys.join(", ") || "none"],
    ["status", call.errorType === undefined ? String(call.status) : `${call.status} ${call.errorType}`],
    ["rule", call.rule ?? "-"],
    ["cause", call.cause ?? "-"],
    ["total", ms(call.totalMs)],
    ["  token", ms(call.tokenMs)],
    ["  queue", ms(call.queueMs)],
    ["  provider", ms(call.providerMs)],
    ["bytes sent", String(call.requestBytes)],
    ["bytes received", String(call.responseBytes)],
  ]);
}

/** A refused url was not recorded. */
function placeOf({ origin, path }: StoredCall): string {
  return origin === undefined ? "-" : `${origin}${path ?? ""}`;
}

/** A captured call as text, laid out like the two HTTP messages. */
function textFromCapture({ request, response, message }: CaptureContent): string {
  const sent = request.isSent ? "Sent to the provider:" : "Described by the caller, not sent:";
  const lines = [sent, ...messageLines(`${request.method} ${request.url}`, request.headers, request.body)];
  if (response !== undefined) {
    lines.push("", "Answered by the provider:");
    lines.push(...messageLines(String(response.statusCode), response.headers, response.body));
  }
  if (message !== undefined) lines.push("", `The caller was told: ${printable(message)}`);
  return lines.join("\n");
}

function messageLines(first: string, headers: HeaderPairs, body: CapturedBody | undefined): string[] {
  const fields = headers.map(([name, value]) => printable(`${name}: ${value}`));
  return [printable(first), ...fields, ...(body === undefined ? [] : ["", ...bodyLines(body)])];
}

function bodyLines({ bytes, text, isCut }: CapturedBody): string[] {
  if (text === undefined) return [`(${bytes} bytes that are not text)`];
  const lines = text.split(/\r?\n/).map(printable);
  return isCut ? [...lines, `(cut off; ${bytes} bytes in all)`] : lines;
}

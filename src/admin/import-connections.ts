import { createHash } from "node:crypto";
import type { Application } from "../applications/application.js";
import { requireCallerIds } from "../applications/caller.js";
import { uniqueObjectFrom } from "../json/json-slice.js";
import { RelayError } from "../model/errors.js";
import type { NewerConnection } from "../oauth/connection.js";
import type { Provider, ProviderCatalog } from "../providers/provider.js";
import { SealError, type Sealer } from "../sealing/seal.js";
import { type Administration, parseTime } from "./administration.js";
import { connectionFrom, contentFrom, findClientProblem, type PutConnectionInput } from "./connections.js";
import { type ConnectionLine, type SealedParts, transferBinding } from "./export-connections.js";

/** Options of {@link importConnections}. */
interface ImportOptions {
  readonly administration: Administration;
  readonly catalog: Pick<ProviderCatalog, "find">;
  /** Public key for lines that name no application. */
  readonly publicKey: string | undefined;
  /** Opens sealed lines. */
  readonly opener: Pick<Sealer, "open">;
  /** Called with the reason when a line is refused. Of the line's text it quotes only names that a definition has. */
  readonly onRefused: (line: number, reason: string) => void;
  /** Called after each transaction. */
  readonly onProgress: (counts: ImportCounts) => void;
}

/** Results of the lines so far. */
export interface ImportCounts {
  readonly stored: number;
  /** Lines whose connections already exist with tokens as new or newer. */
  readonly kept: number;
  readonly refused: number;
}

/** Longest line: a line with the longest tokens, sealed, takes about a third of it. */
export const MAX_LINE_BYTES = 256 * 1024;
/** Connections per transaction, which waits for the disk once and makes others wait for some 10 ms. */
const BATCH = 200;
/** Keys remembered to detect a second line for the same connection: some 100 MiB. */
const MAX_REMEMBERED = 1_000_000;

/**
 * Stores a connection for each valid line. Keeps a stored connection whose tokens are as new or newer, so that the same
 * lines can be imported again after an interruption. Rejects with RelayError STORE_UNAVAILABLE.
 */
export async function importConnections(options: ImportOptions, lines: AsyncIterable<Line>): Promise<ImportCounts> {
  const counts = { stored: 0, kept: 0, refused: 0 };
  const reader = createLineReader(options);
  let batch: NewerConnection[] = [];
  const store = async () => {
    if (batch.length === 0) return;
    const { store: into, now } = options.administration;
    for (const isStored of await into.connections.putNewer(batch, now())) counts[isStored ? "stored" : "kept"] += 1;
    batch = [];
    options.onProgress(counts);
  };
  for await (const line of lines) {
    const read = await reader(line);
    if (typeof read === "string") {
      counts.refused += 1;
      options.onRefused(line.number, read);
    } else if (read !== undefined) batch.push(read);
    if (batch.length === BATCH) await store();
  }
  await store();
  return counts;
}

/** Why a line is refused: a sentence without its full stop. */
class LineProblem extends Error {}

function createLineReader(options: ImportOptions) {
  /** Connection key → line number. */
  const seen = new Map<string, number>();
  const applications = new Map<string, Application>();

  async function read({ number, bytes }: Line): Promise<NewerConnection | undefined> {
    const line = lineFrom(bytes);
    if (line === undefined) return undefined;
    const input = await inputFrom(options, applications, line);
    const key = createHash("sha256")
      .update(`${input.application.id} ${input.provider.name} ${input.userId}`)
      .digest("base64");
    const before = seen.get(key);
    if (before !== undefined) throw new LineProblem(`repeats the connection of line ${before}`);
    const now = options.administration.now();
    const asOf = Math.min(input.obtainedAt ?? 0, now);
    const made = await connectionFrom(options.administration, input, asOf || now);
    if (seen.size < MAX_REMEMBERED) seen.set(key, number);
    return { ...made, asOf };
  }

  return (line: Line): Promise<NewerConnection | undefined | string> =>
    read(line).catch((error: unknown) => {
      if (error instanceof LineProblem) return error.message;
      throw error;
    });
}

/** Undefined for an empty line. */
function lineFrom(bytes: Uint8Array | undefined): ConnectionLine | undefined {
  if (bytes === undefined) throw new LineProblem(`is longer than ${MAX_LINE_BYTES} bytes`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new LineProblem("is not UTF-8");
  }
  return text.trim() === "" ? undefined : objectFrom(text, MEMBERS, "the line");
}

const SEALED_MEMBERS = ["token", "secrets", "parameters", "obtained_at"];
const MEMBERS = ["application", "user", "provider", "sealed", ...SEALED_MEMBERS];

/** A token response nests some levels at most. */
const MAX_DEPTH = 64;

function objectFrom(text: string, members: readonly string[], what: string): ConnectionLine {
  const value = uniqueObjectFrom(Buffer.from(text), { maxDepth: MAX_DEPTH });
  if (value === undefined) throw new LineProblem(`${what} is not a JSON object, or has a member twice`);
  // Never quote the member's name: it may be anything, even a token.
  if (Object.keys(value).some((name) => !members.includes(name)))
    throw new LineProblem(`${what} has a member other than ${members.join(", ")}`);
  return value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

type LineInput = PutConnectionInput & { readonly obtainedAt: number | undefined };

async function inputFrom(
  options: ImportOptions,
  applications: Map<string, Application>,
  line: ConnectionLine,
): Promise<LineInput> {
  const publicKey = textOf(line, "application", options.publicKey);
  const userId = textOf(line, "user");
  const named = textOf(line, "provider");
  requireIds(publicKey, userId);
  const provider = options.catalog.find(named);
  if (provider === undefined) throw new LineProblem("provider: no provider has this name");
  const { store } = options.administration;
  const application = applications.get(publicKey) ?? (await store.applications.findByPublicKey(publicKey));
  if (application === undefined) throw new LineProblem("application: no application has this public key");
  applications.set(publicKey, application);
  const parts = line.sealed === undefined ? line : openedFrom(options, line, { publicKey, userId, provider: named });
  const content = inputContentFrom(parts, provider);
  const input = { application, userId, provider, ...content, obtainedAt: timeFrom(parts) };
  const problem = await findClientProblem(store, input);
  if (problem === undefined) return input;
  throw new LineProblem(`${problem.parameter} ${problem.problem}`);
}

function textOf(line: ConnectionLine, member: "application" | "user" | "provider" | "sealed", other?: string): string {
  const value = line[member] ?? other;
  if (typeof value === "string" && value !== "") return value;
  throw new LineProblem(`${member} ${value === undefined || value === "" ? "is missing" : "is not a string"}`);
}

function requireIds(publicKey: string, userId: string): void {
  try {
    requireCallerIds({ publicKey, userId });
  } catch (error) {
    if (!(error instanceof RelayError)) throw error;
    throw new LineProblem(error.message.replace("public_key", "application").replace(/_id|\.$/g, ""));
  }
}

function openedFrom(
  { opener }: ImportOptions,
  line: ConnectionLine,
  owner: Parameters<typeof transferBinding>[0],
): SealedParts {
  if (SEALED_MEMBERS.some((name) => name in line))
    throw new LineProblem(`sealed cannot be combined with ${SEALED_MEMBERS.join(", ")}`);
  try {
    const opened = opener.open(Buffer.from(textOf(line, "sealed"), "base64url"), transferBinding(owner));
    return objectFrom(opened.toString(), SEALED_MEMBERS, "the sealed content");
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    throw new LineProblem(
      error.reason === "unknown_key"
        ? "sealed: the key is not in the key file; give its file with --key"
        : "sealed: it was altered, or belongs to another connection",
    );
  }
}

function inputContentFrom(parts: SealedParts, provider: Provider) {
  const { token, secrets } = parts;
  if (provider.kind !== "oauth2" && token !== undefined)
    throw new LineProblem(`token: ${provider.name} needs secrets instead, which 'relay provider show' names`);
  if (provider.kind === "oauth2") {
    if (secrets !== undefined) throw new LineProblem(`secrets: ${provider.name} needs token instead, a token response`);
    if (!isObject(token)) throw new LineProblem("token is missing, or not a token response");
  }
  const given = { secrets: textsOf(parts, "secrets"), open: textsOf(parts, "parameters") };
  const content = contentFrom({ ...given, tokenResponse: JSON.stringify(token ?? "") }, provider);
  if (!("problem" in content)) return content;
  const { part, parameter, problem } = content;
  if (part === "token_response") throw new LineProblem(`token: ${problem.replace(/\.$/, "")}`);
  // Only a name from the definition may be quoted.
  const isKnown = provider.connectionValues.some(({ name }) => name === parameter);
  throw new LineProblem(`${isKnown ? `${part}.${parameter}` : part}: ${problem}`);
}

function textsOf(parts: SealedParts, member: "secrets" | "parameters"): ReadonlyMap<string, string> {
  const given = parts[member] ?? {};
  const isTexts = isObject(given) && Object.values(given).every((value) => typeof value === "string");
  if (!isTexts) throw new LineProblem(`${member} is not a JSON object of strings`);
  return new Map(Object.entries(given as Record<string, string>));
}

function timeFrom({ obtained_at: text }: SealedParts): number | undefined {
  if (text === undefined) return undefined;
  const time = typeof text === "string" && text.includes("T") ? parseTime(text) : undefined;
  if (time !== undefined && time > 0) return time;
  throw new LineProblem("obtained_at is not a time such as 2026-01-31T12:00:00Z");
}

/** A line of a stream. */
interface Line {
  /** Counts from 1. */
  readonly number: number;
  /** Without the line feed; undefined when the line is too long. */
  readonly bytes: Uint8Array | undefined;
}

const LINE_FEED = 0x0a;

/** Splits a stream at line feeds; the last line may have none. A line that is too long is discarded. */
export async function* linesOf(stream: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Line> {
  let number = 1;
  let parts: Uint8Array[] = [];
  let length = 0;
  const add = (part: Uint8Array) => {
    length += part.length;
    if (length > maxBytes) parts = [];
    else if (part.length > 0) parts.push(part);
  };
  const take = (): Line => {
    const bytes = length > maxBytes ? undefined : Buffer.concat(parts, length);
    [parts, length] = [[], 0];
    return { number: number++, bytes };
  };
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end));
      yield take();
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  if (length > 0) yield take();
}

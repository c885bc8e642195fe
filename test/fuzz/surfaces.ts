import { type Dispatcher, Pool } from "undici";
import type { TestApplication } from "../support/harness.js";
import { mustHold } from "./campaign.js";

/** Who calls, and the call as JSON text that need not be any. */
export interface FuzzCall {
  readonly providerName: string;
  readonly userId: string;
  /** Text of the CallDescription. */
  readonly call: string | Buffer;
  readonly responseMode?: "RESPONSE_MODE_BODY";
}

/** An answer of the relay, nothing of it interpreted. */
export interface SurfaceAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly body: Buffer;
  /** Whether it ended before its end. */
  readonly isCut: boolean;
  /** Milliseconds after the deadline of the call; 0 or below when it was in time. */
  readonly lateMs: number;
}

/** The one row of an answer. */
export type FuzzRow = Readonly<Record<string, unknown>>;

/**
 * The ways in that a fuzzer needs: the JSON route, the typed service as JSON, which holds any text, and the pass-through,
 * for calls of a url and a method that a request line can hold.
 */
export type SurfaceName = "REST" | "Connect" | "via";

/** Sends calls to a relay as HTTP/1.1 requests. */
export interface Surfaces {
  send(surface: SurfaceName, call: FuzzCall): Promise<SurfaceAnswer>;
  /** Calls made so far. */
  readonly calls: number;
  close(): Promise<void>;
}

/** @param deadlineMs the relay's own deadline. */
export function createSurfaces(url: string, application: TestApplication, deadlineMs: number): Surfaces {
  const pool = new Pool(url, { connections: 32, headersTimeout: 30_000, bodyTimeout: 30_000 });
  let calls = 0;
  return {
    async send(surface, call) {
      calls += 1;
      const overtime = startOvertime(deadlineMs);
      const { statusCode: status, headers, body: pieces } = await pool.request(requestOf(surface, call, application));
      const { body, isCut } = await readBody(pieces);
      return { status, headers, text: body.toString(), body, isCut, lateMs: overtime() };
    },
    get calls() {
      return calls;
    },
    close: () => pool.close(),
  };
}

/**
 * Measures from when a timer for the deadline is served here: it is as late as the relay's own timer on a busy machine,
 * so that only what the relay adds is counted.
 */
function startOvertime(deadlineMs: number): () => number {
  let dueAt = Number.POSITIVE_INFINITY;
  const timer = setTimeout(() => {
    dueAt = performance.now();
  }, deadlineMs);
  return () => {
    clearTimeout(timer);
    return Math.max(0, performance.now() - dueAt);
  };
}

type Request = Pick<Dispatcher.RequestOptions, "path" | "method" | "headers" | "body">;

function requestOf(surface: SurfaceName, call: FuzzCall, application: TestApplication): Request {
  if (surface === "via") return passedRequest(call, application);
  return {
    path: surface === "REST" ? restPath(call, application) : "/relay.v1.RelayService/Call",
    method: "POST",
    headers: { "content-type": "application/json" },
    body: surface === "REST" ? call.call : connectBody(call, application),
  };
}

function passedRequest({ providerName, userId, call }: FuzzCall, { publicKey }: TestApplication): Request {
  const { url, method } = JSON.parse(String(call)) as { url: string; method: string };
  const path = passedTarget(providerName, url);
  if (path === undefined) throw new Error("no request line can hold this url");
  const headers = { "x-relay-public-key": publicKey, "x-relay-user-id": userId };
  return { path, method: method as Request["method"], headers, body: null };
}

/** A node of HTTP takes longer request lines for an attack. */
const MAX_TARGET_LENGTH = 12_000;

/** Where the pass-through is asked for a url; undefined where no request line can hold it. */
export function passedTarget(providerName: string, url: string): string | undefined {
  const [, rest] = /^https?:\/\/([\x21-\x7e]*)$/i.exec(url) ?? [];
  return rest === undefined || rest.length > MAX_TARGET_LENGTH ? undefined : `/via/${providerName}/${rest}`;
}

async function readBody(pieces: AsyncIterable<Buffer>): Promise<Pick<SurfaceAnswer, "body" | "isCut">> {
  const read: Buffer[] = [];
  try {
    for await (const piece of pieces) read.push(piece);
    return { body: Buffer.concat(read), isCut: false };
  } catch {
    // What has come is judged all the same.
    return { body: Buffer.concat(read), isCut: true };
  }
}

function restPath({ providerName, userId, responseMode }: FuzzCall, { publicKey }: TestApplication): string {
  const mode = responseMode === undefined ? "" : `&response_mode=${responseMode}`;
  return `/oauth/method/${encodeURIComponent(providerName)}/call?user_id=${userId}&public_key=${publicKey}${mode}`;
}

function connectBody({ providerName, userId, responseMode, call }: FuzzCall, { publicKey }: TestApplication): Buffer {
  const head = JSON.stringify({ providerName, userId, publicKey, responseMode }).slice(0, -1);
  return Buffer.concat([Buffer.from(`${head},"call":`), Buffer.from(call as Buffer), Buffer.from("}")]);
}

/** The row of an answer that must be an envelope; of one that was passed through, what a row would say of it. */
export function rowFrom(surface: SurfaceName, answer: SurfaceAnswer): FuzzRow {
  const { status, text, headers } = answer;
  const refused = headers["x-relay-error"];
  if (surface === "via" && refused === undefined) return rowOfPassed(answer);
  // An answer to HEAD.
  if (surface === "via" && text === "") return { pincStatus: "error", statusCode: status, errorType: refused };
  mustHold(!answer.isCut, `${surface} did not end its answer`);
  mustHold(status === 200 || surface === "via", `${surface} answered with HTTP status ${status}`);
  const { rows, ...others } = parseJson(surface, text) as { rows?: readonly FuzzRow[] };
  mustHold(rows?.length === 1 && Object.keys(others).length === 0, `${surface} did not answer with exactly one row`);
  const [row = {}] = rows;
  mustHold(row["pincStatus"] === "success" || row["pincStatus"] === "error", `${surface} has no pincStatus`);
  mustHold(typeof row["statusCode"] === "number", `${surface} has no statusCode`);
  mustHold(row["errorType"] !== "INTERNAL_ERROR", `${surface} answered INTERNAL_ERROR`);
  if (surface !== "via") return row;
  const isTold = row["statusCode"] === status && row["errorType"] === refused;
  mustHold(isTold, `via says ${status} ${refused} for ${row["statusCode"]} ${row["errorType"]}`);
  return row;
}

function rowOfPassed({ status, headers, body, isCut }: SurfaceAnswer): FuzzRow {
  mustHold(headers["x-call-id"] !== undefined, `via answered ${status} without a call`);
  if (isCut) return { pincStatus: "error", statusCode: 502, errorType: "PROVIDER_RESPONSE_INVALID" };
  const error = status >= 400 ? { pincStatus: "error", errorType: "API_ERROR" } : { pincStatus: "success" };
  return { ...error, statusCode: status, body: body.toString("base64") };
}

/** Whether the typed service says that the message cannot be decoded, which never becomes a call and so has no row. */
export function isUndecodable({ status, text }: SurfaceAnswer): boolean {
  return status === 400 && /^\{"code":"invalid_argument","message":"[^"]*"\}$/.test(text);
}

function parseJson(surface: SurfaceName, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${surface} did not answer with JSON`);
  }
}

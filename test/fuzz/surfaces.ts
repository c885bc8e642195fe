import { Pool } from "undici";
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
  /** Milliseconds after the deadline of the call; 0 or below when it was in time. */
  readonly lateMs: number;
}

/** The one row of an answer. */
export type FuzzRow = Readonly<Record<string, unknown>>;

/** The two ways in that a fuzzer needs: the JSON route, and the typed service as JSON, which holds any text. */
export type SurfaceName = "REST" | "Connect";

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
      const path = surface === "REST" ? restPath(call, application) : "/relay.v1.RelayService/Call";
      const body = surface === "REST" ? call.call : connectBody(call, application);
      const answer = await pool.request({
        path,
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      const text = await answer.body.text();
      return { status: answer.statusCode, headers: answer.headers, text, lateMs: overtime() };
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

function restPath({ providerName, userId, responseMode }: FuzzCall, { publicKey }: TestApplication): string {
  const mode = responseMode === undefined ? "" : `&response_mode=${responseMode}`;
  return `/oauth/method/${encodeURIComponent(providerName)}/call?user_id=${userId}&public_key=${publicKey}${mode}`;
}

function connectBody({ providerName, userId, responseMode, call }: FuzzCall, { publicKey }: TestApplication): Buffer {
  const head = JSON.stringify({ providerName, userId, publicKey, responseMode }).slice(0, -1);
  return Buffer.concat([Buffer.from(`${head},"call":`), Buffer.from(call as Buffer), Buffer.from("}")]);
}

/** The row of an answer that must be an envelope. */
export function rowFrom(surface: SurfaceName, { status, text }: SurfaceAnswer): FuzzRow {
  mustHold(status === 200, `${surface} answered with HTTP status ${status}`);
  const { rows, ...others } = parseJson(surface, text) as { rows?: readonly FuzzRow[] };
  mustHold(rows?.length === 1 && Object.keys(others).length === 0, `${surface} did not answer with exactly one row`);
  const [row = {}] = rows;
  mustHold(row["pincStatus"] === "success" || row["pincStatus"] === "error", `${surface} has no pincStatus`);
  mustHold(typeof row["statusCode"] === "number", `${surface} has no statusCode`);
  mustHold(row["errorType"] !== "INTERNAL_ERROR", `${surface} answered INTERNAL_ERROR`);
  return row;
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

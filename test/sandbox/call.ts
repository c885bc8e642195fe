import { request } from "undici";
import type { Sandbox } from "../support/sandbox.js";

/** A whole answer. */
export interface Received {
  readonly statusCode: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly bytes: Buffer;
  readonly text: string;
}

export interface CallOptions {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

/** Sends one request and reads the whole answer; nothing is decoded. */
export async function send(url: string, { method = "GET", headers = {}, body }: CallOptions = {}): Promise<Received> {
  const answer = await request(url, { method: method as "GET", headers, body: body ?? null });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  return { statusCode: answer.statusCode, headers: answer.headers, bytes, text: bytes.toString() };
}

/** Sends with a fresh access token of the sandbox. */
export function call(sandbox: Sandbox, target: string, options: CallOptions = {}): Promise<Received> {
  const authorization = `Bearer ${sandbox.issueToken().access_token}`;
  return send(sandbox.origin + target, { ...options, headers: { authorization, ...options.headers } });
}

/** Sends a form, as OAuth endpoints take it. */
export function sendForm(
  url: string,
  parameters: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Received> {
  const form = { "content-type": "application/x-www-form-urlencoded", ...headers };
  return send(url, { method: "POST", headers: form, body: new URLSearchParams(parameters).toString() });
}

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { expect, onTestFinished } from "vitest";
import type { TokenParts } from "../../support/call-tokens.js";
import type { ViaBed } from "../via/via-bed.js";

/** An agent: the official client, and everything that the relay sent to it. */
export interface Agent {
  readonly client: Client;
  /** Bodies of all answers so far. */
  readonly heard: readonly string[];
  /** What a tool answers: its one JSON text, and whether it is an error. */
  use(tool: string, args?: Record<string, unknown>): Promise<Used>;
}

/** The result of a tool, read. */
interface Used {
  readonly isError: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever comes
  readonly told: any;
  readonly text: string;
}

/** Connects as an agent does that has a call token; `ada` and any request unless the parts say otherwise. */
export async function connectAgent(bed: ViaBed, parts: TokenParts | string = {}): Promise<Agent> {
  const token = typeof parts === "string" ? parts : bed.callToken(parts);
  const heard: string[] = [];
  const transport = new StreamableHTTPClientTransport(new URL("/mcp", bed.harness.url), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      heard.push(JSON.stringify([...response.headers]) + (await response.clone().text()));
      return response;
    },
  });
  const client = new Client({ name: "agent", version: "1.0.0" });
  onTestFinished(() => client.close());
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  return {
    client,
    heard,
    async use(name, args) {
      const { content, isError = false } = (await client.callTool({ name, arguments: args })) as CallToolResult;
      expect(content).toHaveLength(1);
      const text = content[0]?.type === "text" ? content[0].text : "";
      return { isError, text, told: JSON.parse(text) };
    },
  };
}

/** What a POST of bytes is answered with. */
export interface Posted {
  readonly status: number;
  readonly fields: Headers;
  readonly text: string;
  /** Of the JSON-RPC error. */
  readonly message: string | undefined;
}

export const LIST_TOOLS = { jsonrpc: "2.0", id: 1, method: "tools/list" };

/** Posts as no client of the SDK would. */
export async function post(
  bed: ViaBed,
  fields: Record<string, string>,
  body: string | Buffer = JSON.stringify(LIST_TOOLS),
  path = "/mcp",
): Promise<Posted> {
  const headers = { accept: "application/json, text/event-stream", "content-type": "application/json", ...fields };
  const response = await fetch(bed.harness.url + path, {
    method: "POST",
    headers,
    body: new Uint8Array(Buffer.from(body)),
  });
  const text = await response.text();
  const message = text.startsWith("{") ? JSON.parse(text).error?.message : undefined;
  return { status: response.status, fields: response.headers, text, message };
}

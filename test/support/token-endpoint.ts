import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { request } from "undici";

/** How the next token requests are answered: passed on to the sandbox, or played by a test. */
export type PlayToken = (body: string, response: ServerResponse, pass: () => Promise<void>) => void | Promise<void>;

/** A token endpoint in front of the sandbox's, which a test can slow down, break or replace. */
export interface TestTokenEndpoint {
  readonly url: string;
  /** Forms it received, oldest first. */
  readonly received: URLSearchParams[];
  /** The same requests as they came: path with query, media type, body. */
  readonly requests: Array<readonly [path: string, mediaType: string, body: string]>;
  play: PlayToken;
  close(): Promise<void>;
}

/** Starts it on a free port of 127.0.0.1; at first it passes everything on. */
export async function startTokenEndpoint(sandboxOrigin: () => string): Promise<TestTokenEndpoint> {
  const received: URLSearchParams[] = [];
  const requests: TestTokenEndpoint["requests"] = [];
  const server = createServer((incoming, response) => void answer(incoming, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const endpoint: TestTokenEndpoint = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    received,
    requests,
    play: (_body, _response, pass) => pass(),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(incoming);
    received.push(new URLSearchParams(body));
    requests.push([incoming.url ?? "", incoming.headers["content-type"] ?? "", body]);
    const pass = async () => {
      const headers = {
        authorization: incoming.headers.authorization ?? "",
        "content-type": incoming.headers["content-type"] ?? "",
      };
      const passed = await request(`${sandboxOrigin()}/oauth/token`, { method: "POST", headers, body });
      response.writeHead(passed.statusCode, { "content-type": "application/json" });
      response.end(await passed.body.text());
    };
    await endpoint.play(body, response, pass);
  }

  return endpoint;
}

/** Answers with JSON. */
export function answerJson(response: ServerResponse, statusCode: number, body: unknown): void {
  response.writeHead(statusCode, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

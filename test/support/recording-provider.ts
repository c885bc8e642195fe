import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** One request as the provider got it. */
export interface RecordedRequest {
  readonly method: string;
  /** Path and query as they were sent. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What a provider answers with. */
export interface RecordedAnswer {
  readonly statusCode?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A provider on 127.0.0.1 that keeps what it was sent. */
export interface RecordingProvider {
  readonly origin: string;
  readonly requests: RecordedRequest[];
  close(): Promise<void>;
}

/** Starts a provider; without an answer of a test's own it sends back what it got. */
export async function startRecordingProvider(
  answer: (request: RecordedRequest) => RecordedAnswer | Promise<RecordedAnswer> = echo,
): Promise<RecordingProvider> {
  const requests: RecordedRequest[] = [];
  const server = createServer(async (incoming, response) => {
    const { method = "", url: target = "", headers } = incoming;
    const request = { method, target, headers, body: await text(incoming) };
    requests.push(request);
    const { statusCode = 200, headers: fields = {}, body } = await answer(request);
    response.writeHead(statusCode, { "content-type": "application/json", ...fields });
    response.end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function echo(request: RecordedRequest): RecordedAnswer {
  return { body: JSON.stringify(request) };
}

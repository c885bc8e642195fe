import { EventEmitter, once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";

/** An event as it arrived. */
export interface ReceivedEvent {
  readonly id: string;
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An application's receiver of webhooks, which keeps what comes and answers as a test says. */
export interface WebhookReceiver {
  readonly url: string;
  /** Oldest first. */
  readonly received: ReceivedEvent[];
  /** Answers each event; at first with 204. One that does nothing lets the relay wait. */
  play: (response: ServerResponse, event: ReceivedEvent) => void;
  /** Resolves when so many have arrived since the start. */
  arrived(count: number): Promise<readonly ReceivedEvent[]>;
  close(): Promise<void>;
}

/** Starts it on a free port of 127.0.0.1, or on the given one. */
export async function startWebhookReceiver(port = 0): Promise<WebhookReceiver> {
  const events = new EventEmitter();
  const received: ReceivedEvent[] = [];
  const server = createServer(async (request, response) => {
    const { url: path = "", method = "", headers } = request;
    const event = { id: String(headers["webhook-id"]), path, method, headers, body: await text(request) };
    received.push(event);
    receiver.play(response, event);
    events.emit("event");
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    play: (response) => void response.writeHead(204).end(),
    async arrived(count) {
      while (received.length < count) await once(events, "event");
      return received;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return receiver;
}

/** The event as the specification's own library takes it; throws when the signature is not that of the secret. */
export function verified(secret: string, { body, headers }: ReceivedEvent) {
  return new Webhook(secret).verify(body, headers as Record<string, string>) as {
    readonly type: string;
    readonly timestamp: string;
    readonly data: Readonly<Record<string, string>>;
  };
}

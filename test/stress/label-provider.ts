import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

/** A provider that tells whose token a request carried, and never the token. */
export interface LabelProvider {
  readonly origin: string;
  /** Marker of a request → labels of the tokens that came with it. */
  readonly seen: ReadonlyMap<string, readonly string[]>;
  close(): Promise<void>;
}

/**
 * Starts one. A request's body is `{"marker", "ms", "size"}`: the answer comes after so many milliseconds, with the
 * label, the marker and so many bytes besides.
 *
 * @param labels token → whose it is.
 */
export async function startLabelProvider(labels: ReadonlyMap<string, string>): Promise<LabelProvider> {
  const seen = new Map<string, string[]>();
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { marker, ms, size } = (await json(request)) as { marker: string; ms: number; size: number };
    const label = labels.get(request.headers.authorization?.slice("Bearer ".length) ?? "") ?? "no known token";
    seen.set(marker, [...(seen.get(marker) ?? []), label]);
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ label, marker, filling: "x".repeat(size) }));
  };
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

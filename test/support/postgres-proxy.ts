import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A way to PostgreSQL that can be cut at a certain statement. */
export interface PostgresProxy {
  /** The URL that was given, at this address. */
  readonly url: string;
  /** The next connection that sends this text ends: before the server has it, or when the server has acted on it. */
  cut(when: "before" | "after", text: string): void;
  /** Nothing is passed on any more, and nothing ends. */
  silence(): void;
  close(): Promise<void>;
}

/** Starts one on a free port of 127.0.0.1. */
export async function startPostgresProxy(url: string): Promise<PostgresProxy> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let armed: { readonly when: "before" | "after"; readonly text: string } | undefined;
  let isSilent = false;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", end);
    }
    client.on("data", (chunk) => {
      if (isSilent) return;
      const hit = armed !== undefined && chunk.includes(armed.text) ? armed : undefined;
      if (hit === undefined) return void upstream.write(chunk);
      armed = undefined;
      if (hit.when === "before") return end();
      // Its answer says that the server has acted.
      upstream.removeAllListeners("data").once("data", end);
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => void (isSilent || client.write(chunk)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address() as AddressInfo;
  return {
    url: url.replace(`:${port}/`, `:${address.port}/`),
    cut(when, text) {
      armed = { when, text };
    },
    silence() {
      isSilent = true;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

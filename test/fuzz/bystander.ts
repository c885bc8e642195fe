import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

/** A server that nobody may ever contact. */
export interface Bystander {
  readonly port: number;
  /** `host:port` of a url. */
  readonly authority: string;
  /** Sockets accepted. */
  readonly accepted: number;
  close(): Promise<void>;
}

/** Listens on a loopback address and counts whoever comes. */
export async function startBystander(host: string): Promise<Bystander> {
  let accepted = 0;
  const server = createServer((socket) => {
    accepted += 1;
    socket.destroy();
  });
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    authority: `${host}:${port}`,
    get accepted() {
      return accepted;
    },
    async close() {
      server.close();
      await once(server, "close");
    },
  };
}

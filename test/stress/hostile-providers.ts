import type { Socket } from "node:net";
import { Agent } from "undici";
import { type RawProvider, startRawProvider } from "../support/raw-provider.js";
import type { ChildRelay } from "./child-relay.js";

/** Providers that keep a call for as long as they can. */
export interface HostileProviders {
  /** A byte of the body every 200 ms. */
  readonly drip: RawProvider;
  /** 103 answers as fast as they are taken. */
  readonly flood: RawProvider;
  /** A 103 answer every 200 ms. */
  readonly trickle: RawProvider;
  close(): Promise<void>;
}

const EVERY_MS = 200;
const EARLY_HINTS = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";

/** Starts them, each on an origin of its own. */
export async function startHostileProviders(): Promise<HostileProviders> {
  const drip = await startRawProvider((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    repeat(socket, () => socket.write("x"));
  });
  const flood = await startRawProvider((socket) => {
    const pour = () => {
      while (socket.writable && socket.write(EARLY_HINTS));
    };
    socket.on("drain", pour);
    pour();
  });
  const trickle = await startRawProvider((socket) => repeat(socket, () => socket.write(EARLY_HINTS)));
  return {
    drip,
    flood,
    trickle,
    close: async () => {
      for (const provider of [drip, flood, trickle]) await provider.close();
    },
  };
}

function repeat(socket: Socket, write: () => void): void {
  const timer = setInterval(write, EVERY_MS);
  socket.on("close", () => clearInterval(timer));
}

/** Callers of such a provider, so many at once, that call again whenever a call ends. */
export interface HostileCallers {
  /** Calls that have ended. */
  ended(): number;
  stop(): Promise<void>;
}

/** Between two calls of one caller: a flood ends its call at once, and its callers are not what is measured. */
const PAUSE_MS = 100;

/** Starts them. */
export function startHostileCallers(
  relay: Pick<ChildRelay, "url" | "publicKey">,
  providerName: string,
  origin: string,
  count: number,
): HostileCallers {
  const agent = new Agent({ connections: count, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  const path = `/oauth/method/${providerName}/call?user_id=u&public_key=${relay.publicKey}`;
  const body = JSON.stringify({ url: `${origin}/`, method: "GET" });
  let ended = 0;
  let isStopped = false;
  const work = async () => {
    while (!isStopped) {
      try {
        const answer = await agent.request({ origin: relay.url, path, method: "POST", body });
        await answer.body.dump();
      } catch {
        // The agent is destroyed at the end of the scenario.
      }
      ended++;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  };
  const working = Promise.all(Array.from({ length: count }, work));
  return {
    ended: () => ended,
    async stop() {
      isStopped = true;
      await agent.destroy();
      await working;
    },
  };
}

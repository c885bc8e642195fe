import { pick } from "../support/random.js";
import type { RelayProcess } from "./relay-process.js";
import type { World } from "./world.js";

/** Relay processes that are restarted at once when they are killed. */
export interface Fleet {
  /** When processes were killed, milliseconds since the epoch. */
  readonly kills: readonly number[];
  /** How many of them did not listen yet. */
  startingKills(): number;
  /** SIGKILL for the process at this place; the next one starts when it is gone. */
  kill(at: number): void;
  /** Resolves when a process is at this place that lives: at once, or when the one that was killed is gone. */
  started(at: number): Promise<void>;
  /** Resolves when the process at this place listens, or has ended. */
  listening(at: number): Promise<unknown>;
  /** Where one listens that lives, or lived a moment ago. */
  url(random: () => number): string;
  /** Resolves when all listen. */
  ready(): Promise<void>;
  /** Restarts no more. */
  close(): void;
}

/** Starts `size` of them. */
export function createFleet(world: World, size: number): Fleet {
  const kills: number[] = [];
  const killed = new WeakSet<RelayProcess>();
  let startingKills = 0;
  let isClosed = false;
  const relays = Array.from({ length: size }, (_, at) => start(at));

  function start(at: number): RelayProcess {
    const relay = world.startRelay();
    void relay.exited.then(() => {
      if (!isClosed) relays[at] = start(at);
    });
    return relay;
  }

  return {
    kills,
    startingKills: () => startingKills,
    kill(at) {
      const relay = relays[at] as RelayProcess;
      if (relay.url === undefined) startingKills += 1;
      kills.push(Date.now());
      killed.add(relay);
      relay.kill("SIGKILL");
    },
    async started(at) {
      for (let relay = relays[at]; relay !== undefined && killed.has(relay); relay = relays[at]) await relay.exited;
    },
    listening: async (at) => relays[at]?.listening,
    url(random) {
      const urls = relays.flatMap(({ url }) => url ?? []);
      return urls.length === 0 ? "http://127.0.0.1:1" : pick(random, urls);
    },
    async ready() {
      while ((await Promise.all(relays.map(({ listening }) => listening))).includes(undefined));
    },
    close() {
      isClosed = true;
    },
  };
}

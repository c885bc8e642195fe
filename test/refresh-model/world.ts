import { randomUUID } from "node:crypto";
import { RelayError } from "../../src/model/errors.js";
import { createBreaker } from "../../src/oauth/breaker.js";
import { createClientHolds } from "../../src/oauth/client-holds.js";
import type { Connection, ConnectionStore } from "../../src/oauth/connection.js";
import type { Spool, UnstoredAnswer } from "../../src/oauth/peers.js";
import { createRenewer, type Renewer } from "../../src/oauth/renewer.js";
import { type Sweep, startSweep } from "../../src/oauth/sweep.js";
import type { TokenEndpointAnswer } from "../../src/oauth/token-answer.js";
import type { Sealer } from "../../src/sealing/seal.js";
import type { SqliteStore } from "../../src/store/sqlite.js";
import { renewalTargetForTest } from "../oauth/renewal-target-for-test.js";
import { connectionForTest } from "../store/store-for-test.js";
import type { Choose } from "./explore.js";

/** What a run is made of; the store is the relay's own, and shared by all runs. */
export interface ModelOptions {
  readonly store: SqliteStore;
  readonly sealer: Sealer;
  readonly applicationId: string;
  /** The clock of store and processes, in milliseconds. */
  readonly clock: { now: number };
  readonly processes: number;
  readonly tokens: number;
  /** How long a repeated refresh token is answered, in milliseconds; 0 for a strict provider. */
  readonly graceMs: number;
  /** Leases of 5 s that anybody overtakes at their end, as the rule was once. */
  readonly overtakesAtEnd?: boolean;
}

/** A step that waits for its turn. */
interface Event {
  readonly at: number;
  readonly order: number;
  readonly process: Process | undefined;
  readonly kind: "store" | "answer" | "time";
  /** @param fault what happens instead. */
  run(fault: Fault): void;
}

type Fault = "none" | "refused" | "killed before" | "killed after" | "halted" | "cut" | "late";
const FAULTS: Readonly<Record<Event["kind"], readonly Fault[]>> = {
  store: ["none", "refused", "killed before", "killed after", "halted"],
  answer: ["none", "cut", "late", "killed before", "halted"],
  time: ["none"],
};

interface Process {
  readonly name: string;
  readonly answers: Map<string, UnstoredAnswer>;
  isDead: boolean;
  isSettled: boolean;
  haltedUntil: number;
  renewer: Renewer;
  sweep: Sweep;
}

/** A refresh token that was spent, by whom, and what became of the answer. */
interface Spent {
  readonly by: Process;
  readonly at: number;
  readonly successor: string;
  isCut: boolean;
}

const ENDPOINT = "https://provider.test/token";
const OUTAGE_MS = 12_000;
const HALT_MS = 20_000;
const LATE_MS = 90_000;
/** When every process looks and calls again. */
const LOOKS_MS = [2000, 4000, 9000, 15_000, 30_000, 100_000, 400_000, 440_000, 480_000];
const END_MS = 500_000;
const MAX_STEPS = 2000;

/**
 * Runs the relay's own refreshing of some connections by some processes at once, over its own store, with a simulated
 * provider, clock and spool. `choose` decides at each step what happens. Resolves to what is wrong, undefined for nothing:
 * a spent refresh token sent while somebody could know its successor, or a connection lost without need, or not flagged.
 */
export async function runModel(options: ModelOptions, choose: Choose): Promise<string | undefined> {
  const { store, sealer, clock, graceMs } = options;
  clock.now += 10_000_000;
  const start = clock.now;
  const events = new Set<Event>();
  const processes: Process[] = [];
  const spent = new Map<string, Spent>();
  const ended = new Set<string>();
  let order = 0;
  let storeDownUntil = 0;
  let finding: string | undefined;
  let isOver = false;
  let hasFailed = false;

  const later = (ms: number, kind: Event["kind"], process: Process | undefined, run: Event["run"]) =>
    void events.add({ at: clock.now + ms, order: order++, process, kind, run });
  const kill = (process: Process) => {
    process.isDead = true;
    for (const event of events) if (event.process === process) events.delete(event);
  };
  const halt = (process: Process) => {
    process.haltedUntil = clock.now + HALT_MS;
  };

  /** An operation of the store: a step of its own, that may be refused, or be the last of its process. */
  function operation<T>(process: Process, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const perform = (fault: Fault) => {
        if (fault === "refused") storeDownUntil = clock.now + OUTAGE_MS;
        if (fault === "killed before") return kill(process);
        if (fault === "halted") {
          halt(process);
          return later(0, "time", process, () => perform("none"));
        }
        if (clock.now < storeDownUntil) return reject(new RelayError("STORE_UNAVAILABLE", "down"));
        work().then(fault === "killed after" ? () => {} : resolve, reject);
        if (fault === "killed after") kill(process);
      };
      later(0, "store", process, perform);
    });
  }

  function connectionsOf(process: Process): ConnectionStore {
    const real = store.connections;
    return new Proxy(real, {
      get:
        (_target, name: keyof ConnectionStore) =>
        (...values: unknown[]) => {
          const call = real[name] as (...values: unknown[]) => Promise<unknown>;
          if (name !== "takeLease" || options.overtakesAtEnd !== true) return operation(process, () => call(...values));
          const [connection, owner] = values as Parameters<ConnectionStore["takeLease"]>;
          return operation(process, async () => {
            const row = await real.find(connection);
            for (const each of (row?.leaseUntil ?? 0) <= clock.now ? processes : []) await real.freeLeases(each.name);
            return real.takeLease(connection, owner, 5000);
          });
        },
    });
  }

  /** Rotates when the request arrives; refuses, and ends the family, when a token comes twice behind the grace. */
  function send(process: Process, refreshToken: string): Promise<TokenEndpointAnswer> {
    return new Promise((resolve, reject) => {
      const before = spent.get(refreshToken);
      const family = refreshToken.split(".")[0] as string;
      if (before !== undefined) judgeRepetition(process, refreshToken, before);
      const isGiven = !ended.has(family) && (before === undefined || clock.now < before.at + graceMs);
      if (!isGiven) ended.add(family);
      const successor = before?.successor ?? `${family}.${order++}`;
      const own: Spent = { by: process, at: before?.at ?? clock.now, successor, isCut: false };
      if (isGiven) spent.set(refreshToken, own);
      const body = Buffer.from(
        JSON.stringify(
          isGiven ? { access_token: "a", refresh_token: successor, expires_in: 3600 } : { error: "invalid_grant" },
        ),
      );
      const answer = () => resolve({ statusCode: isGiven ? 200 : 400, body, retryAfter: "" });
      later(1, "answer", process, (fault) => {
        if (fault === "killed before") return kill(process);
        if (fault === "halted") halt(process);
        if (fault === "cut") own.isCut = true;
        if (fault === "cut") return reject(new RelayError("PROVIDER_UNREACHABLE", "cut"));
        if (fault === "late" || fault === "halted")
          return later(fault === "late" ? LATE_MS : 0, "time", process, answer);
        answer();
      });
    });
  }

  function judgeRepetition(process: Process, refreshToken: string, { by, isCut, successor }: Spent): void {
    const isKept = [...by.answers.values()].some(({ connection }) => successor.startsWith(connection.userId));
    if (!by.isDead && !isCut)
      finding ??= `${process.name} sent ${refreshToken} again while ${by.name} lives with its answer`;
    if (by.isDead && isKept) finding ??= `${process.name} sent ${refreshToken} again although the spool has its answer`;
  }

  function start1(name: string): Process {
    const process = { name, answers: new Map(), isDead: false, isSettled: false, haltedUntil: 0 } as unknown as Process;
    const spool = spoolOf(process);
    const connections = connectionsOf(process);
    const onFault = () => {};
    process.renewer = createRenewer({
      connections,
      sealer,
      spool,
      breaker: createBreaker(),
      requestTimeoutMs: 120_000,
      now: () => clock.now,
      random: () => 0.5,
      pause: (ms) => new Promise((resolve) => later(ms, "time", process, () => resolve())),
      onFault,
      onRenewal: () => {},
      onRevocation: () => {},
      clients: createClientHolds(),
      noteClientRefused: async () => {},
      placeFor: async () => ({ endpoint: ENDPOINT, client: { applicationId: "a", providerName: "p", updatedAt: 1 } }),
      targetFor: async ({ id }) =>
        renewalTargetForTest({
          connectionId: id,
          tokenEndpoint: ENDPOINT,
          client: { clientId: "c", clientSecret: undefined },
        }),
      send: (_target, { body }) => send(process, new URLSearchParams(String(body)).get("refresh_token") ?? ""),
    });
    process.sweep = startSweep({
      connections,
      peers: [spool],
      sealer,
      renewer: process.renewer,
      now: () => clock.now,
      onReplayed: () => {},
      onFault,
    });
    // The timer is of the real clock; looks are steps here.
    void process.sweep.close();
    processes.push(process);
    return process;
  }

  function spoolOf(process: Process): Spool {
    return {
      owner: process.name,
      keep: (answer) => Boolean(process.answers.set(answer.connection.id, answer)),
      drop: ({ connection }) => void process.answers.delete(connection.id),
      knows: () => true,
      isEmpty: () => process.answers.size === 0,
      close: () => {},
      async settleGone(settle) {
        for (const each of processes) {
          if (!each.isDead || each.isSettled || options.overtakesAtEnd === true) continue;
          each.isSettled = true;
          try {
            await settle(each.name, [...each.answers.values()]);
            each.answers.clear();
          } catch (error) {
            each.isSettled = false;
            throw error;
          }
        }
      },
    };
  }

  async function flush(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
  }

  async function step(): Promise<boolean> {
    const readyAt = (event: Event) => Math.max(event.at, event.process?.haltedUntil ?? 0);
    const waiting = [...events].sort((one, other) => readyAt(one) - readyAt(other) || one.order - other.order);
    const [first] = waiting;
    if (first === undefined || readyAt(first) > start + END_MS || finding !== undefined) return false;
    clock.now = Math.max(clock.now, readyAt(first));
    // What each process does next, if it does it in this very moment: any may be the first.
    const ready = waiting.filter(
      (event, at) =>
        readyAt(event) <= clock.now && waiting.findIndex(({ process }) => process === event.process) === at,
    );
    const next = ready[ready.length > 1 ? choose(ready.length) : 0] ?? first;
    events.delete(next);
    const faults = isOver ? FAULTS.time : FAULTS[next.kind];
    const fault = faults[choose(faults.length)] ?? "none";
    hasFailed ||= fault !== "none";
    next.run(fault);
    await flush();
    return true;
  }

  const rows: Connection[] = [];
  for (let at = 0; at < options.tokens; at += 1) {
    const key = { applicationId: options.applicationId, userId: randomUUID(), providerName: "github" };
    const made = connectionForTest(sealer, key, { refresh_token: `${key.userId}.first` });
    rows.push(await store.connections.put(made, clock.now));
  }
  const call = async (process: Process) => {
    for (const row of rows) {
      const current = await store.connections.find(row);
      if (current?.version !== row.version || current.state !== "ACTIVE") continue;
      // How it ends is seen in the row.
      process.renewer.renew(current).catch(() => {});
    }
  };
  for (let at = 0; at < options.processes; at += 1) {
    const process = start1(`${order++}-${randomUUID()}`);
    void call(process);
    for (const ms of LOOKS_MS) {
      later(ms + at, "time", process, () => void process.sweep.look().then(() => call(process)));
    }
  }
  await flush();
  let steps = 0;
  while ((await step()) && steps < MAX_STEPS) steps += 1;
  return finding ?? (await judgeEnd());

  /** A process that starts when all is quiet finds each connection good, or flagged where that could not be helped. */
  async function judgeEnd(): Promise<string | undefined> {
    isOver = true;
    for (const process of processes) kill(process);
    events.clear();
    clock.now = start + END_MS / 2;
    for (const row of rows) {
      const current = (await store.connections.find(row)) as Connection;
      const isRefreshed = current.version > row.version && current.state === "ACTIVE";
      const isFlagged = current.state !== "ACTIVE" && current.stateReason === "rotation_lost_suspected";
      const isUntouched = hasFailed && current.version === row.version && current.state === "ACTIVE";
      if (!isRefreshed && !isFlagged && !isUntouched) return `ended as ${current.state} (${current.stateReason})`;
    }
    return undefined;
  }
}

import { randomUUID } from "node:crypto";
import { RelayError, UnconfirmedWriteError } from "../../src/model/errors.js";
import { createBreaker, createClientHolds } from "../../src/oauth/breaker.js";
import type { Connection, ConnectionStore } from "../../src/oauth/connection.js";
import type { Spool, UnstoredAnswer } from "../../src/oauth/peers.js";
import { createRefresher, type Refresher } from "../../src/oauth/refresher.js";
import { type Sweep, startSweep } from "../../src/oauth/sweep.js";
import type { TokenEndpointAnswer } from "../../src/oauth/token-answer.js";
import { TokenRequestNotSentError } from "../../src/oauth/token-request.js";
import type { Sealer } from "../../src/sealing/seal.js";
import type { SqliteStore } from "../../src/store/sqlite.js";
import { refreshTargetForTest } from "../oauth/refresh-target-for-test.js";
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
  /** Whether a refresh token that comes twice, behind the grace, costs its successors as well (RFC 9700 section 4.14.2). */
  readonly endsFamilies: boolean;
  /** Whether processes also stand still for longer than a lease that nobody ends lasts. */
  readonly stalls: boolean;
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

type Fault =
  | "none"
  | "refused"
  | "done, and lost"
  | "killed before"
  | "killed after"
  | "halted"
  | "stalled"
  | "stalled after"
  | "cut"
  | "late";
const FAULTS: Readonly<Record<Event["kind"], readonly Fault[]>> = {
  store: ["none", "refused", "done, and lost", "killed before", "killed after", "halted"],
  answer: ["none", "cut", "late", "killed before", "halted"],
  time: ["none"],
};
/** Others overtake one that stands still for so long, as they must. */
const STALLS: Readonly<Record<Event["kind"], readonly Fault[]>> = {
  store: ["stalled", "stalled after"],
  answer: ["stalled"],
  time: [],
};

interface Process {
  readonly name: string;
  readonly answers: Map<string, UnstoredAnswer>;
  isDead: boolean;
  isSettled: boolean;
  wasStalled: boolean;
  haltedUntil: number;
  refresher: Refresher;
  sweep: Sweep;
}

/** A refresh token that was spent, by whom, and what became of the answer. */
interface Spent {
  readonly by: Process;
  readonly at: number;
  readonly successor: string;
  isCut: boolean;
  /** Whether the answer came to its process. */
  isRead: boolean;
}

const ENDPOINT = "https://provider.test/token";
const OUTAGE_MS = 12_000;
const HALT_MS = 20_000;
const STALL_MS = 1_000_000;
const LATE_MS = 90_000;
/** When every process looks and calls again. */
const LOOKS_MS = [2000, 4000, 9000, 15_000, 30_000, 100_000, 200_000, 400_000, 600_000, 1_010_000, 1_100_000];
const END_MS = 1_200_000;
/** Most are looks at the row while another process has the lease, once a second. */
const MAX_STEPS = 10_000;

/**
 * Runs the relay's own refreshing of some connections by some processes at once, over its own store, with a simulated
 * provider, clock and spool. `choose` decides at each step what happens. Resolves to what is wrong, undefined for nothing:
 * a spent refresh token sent while somebody could know its successor, or a connection lost without need, or not flagged.
 */
export async function runModel(options: ModelOptions, choose: Choose): Promise<string | undefined> {
  const { store, sealer, clock, graceMs } = options;
  clock.now += 20_000_000;
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
  const halt = (process: Process, ms = HALT_MS) => {
    process.haltedUntil = clock.now + ms;
    process.wasStalled ||= ms === STALL_MS;
  };

  /** An operation of the store: a step of its own, that may be refused, or be the last of its process. */
  function operation<T>(process: Process, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const perform = (fault: Fault) => {
        if (fault === "refused") storeDownUntil = clock.now + OUTAGE_MS;
        if (fault === "killed before") return kill(process);
        if (fault === "halted" || fault === "stalled") {
          halt(process, fault === "stalled" ? STALL_MS : HALT_MS);
          return later(0, "time", process, () => perform("none"));
        }
        if (clock.now < storeDownUntil) return reject(new RelayError("STORE_UNAVAILABLE", "down"));
        if (fault === "done, and lost")
          return void work().then(() => reject(new UnconfirmedWriteError("lost")), reject);
        const isStalled = fault === "stalled after";
        if (isStalled) halt(process, STALL_MS);
        const wake = (value: T) => (isStalled ? later(0, "time", process, () => resolve(value)) : resolve(value));
        work().then(fault === "killed after" ? () => {} : wake, reject);
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
  function send(process: Process, refreshToken: string, mayBegin: () => boolean): Promise<TokenEndpointAnswer> {
    return new Promise((resolve, reject) => {
      if (!mayBegin()) return reject(new TokenRequestNotSentError(new RelayError("PROVIDER_TIMEOUT", "too late")));
      const before = spent.get(refreshToken);
      const family = refreshToken.split(".")[0] as string;
      if (before !== undefined) judgeRepetition(process, refreshToken, before);
      const isGiven = !ended.has(family) && (before === undefined || clock.now < before.at + graceMs);
      if (!isGiven && options.endsFamilies) ended.add(family);
      const successor = before?.successor ?? `${family}.${order++}`;
      const own: Spent = { by: process, at: before?.at ?? clock.now, successor, isCut: false, isRead: false };
      if (isGiven) spent.set(refreshToken, own);
      const body = Buffer.from(
        JSON.stringify(
          isGiven ? { access_token: "a", refresh_token: successor, expires_in: 3600 } : { error: "invalid_grant" },
        ),
      );
      const answer = () => {
        own.isRead = isGiven;
        resolve({ statusCode: isGiven ? 200 : 400, body, retryAfter: "" });
      };
      later(1, "answer", process, (fault) => {
        if (fault === "killed before") return kill(process);
        if (fault === "halted") halt(process);
        if (fault === "stalled") halt(process, STALL_MS);
        if (fault === "cut") own.isCut = true;
        if (fault === "cut") return reject(new RelayError("PROVIDER_UNREACHABLE", "cut"));
        if (fault === "late" || fault === "halted" || fault === "stalled")
          return later(fault === "late" ? LATE_MS : 0, "time", process, answer);
        answer();
      });
    });
  }

  function judgeRepetition(process: Process, refreshToken: string, { by, isCut, successor }: Spent): void {
    const isKept = [...by.answers.values()].some(({ connection }) => successor.startsWith(connection.userId));
    if (!by.isDead && !isCut && !by.wasStalled)
      finding ??= `${process.name} sent ${refreshToken} again while ${by.name} lives with its answer`;
    if (by.isDead && isKept) finding ??= `${process.name} sent ${refreshToken} again although the spool has its answer`;
  }

  function start1(name: string): Process {
    const process = {
      name,
      answers: new Map(),
      isDead: false,
      isSettled: false,
      wasStalled: false,
      haltedUntil: 0,
    } as unknown as Process;
    const spool = spoolOf(process);
    const connections = connectionsOf(process);
    const onFault = () => {};
    process.refresher = createRefresher({
      connections,
      sealer,
      spool,
      breaker: createBreaker(),
      requestTimeoutMs: 120_000,
      now: () => clock.now,
      random: () => 0.5,
      pause: (ms) => new Promise((resolve) => later(ms, "time", process, () => resolve())),
      onFault,
      onRefresh: () => {},
      onRevocation: () => {},
      clients: createClientHolds(),
      noteClientRefused: async () => {},
      placeFor: async () => ({
        endpoint: ENDPOINT,
        client: { id: "c", applicationId: "a", providerName: "p", updatedAt: 1 },
      }),
      targetFor: async ({ id }) =>
        refreshTargetForTest({
          connectionId: id,
          tokenEndpoint: ENDPOINT,
          client: { clientId: "c", clientSecret: undefined },
        }),
      send: (_target, { body }, _signal, mayBegin = () => true) =>
        send(process, new URLSearchParams(String(body)).get("refresh_token") ?? "", mayBegin),
    });
    process.sweep = startSweep({
      connections,
      peers: [spool],
      refresher: process.refresher,
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
      close: async () => {},
      async settleGone({ store: keep, free }) {
        for (const each of processes) {
          if (!each.isDead || each.isSettled || options.overtakesAtEnd === true) continue;
          each.isSettled = true;
          try {
            for (const [id, answer] of each.answers) {
              await keep(answer);
              each.answers.delete(id);
            }
            await free(each.name);
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
    const faults = isOver ? FAULTS.time : [...FAULTS[next.kind], ...(options.stalls ? STALLS[next.kind] : [])];
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
      process.refresher.refresh(current).catch(() => {});
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
  if (steps === MAX_STEPS) finding ??= "comes to no end";
  return finding ?? (await judgeEnd());

  /** A process that starts when all is quiet finds each connection good, or flagged where that could not be helped. */
  async function judgeEnd(): Promise<string | undefined> {
    isOver = true;
    events.clear();
    clock.now = start + END_MS;
    for (const row of rows) {
      const current = (await store.connections.find(row)) as Connection;
      const isRefreshed = current.version > row.version && current.state === "ACTIVE";
      const isFlagged = current.state !== "ACTIVE" && current.stateReason === "rotation_lost_suspected";
      // Somebody who lives must have refreshed it by now.
      const isAnybodyThere = processes.some(({ isDead, wasStalled }) => !isDead && !wasStalled);
      const isUntouched = hasFailed && !isAnybodyThere && current.version === row.version && current.state === "ACTIVE";
      if (!isRefreshed && !isFlagged && !isUntouched) return `ended as ${current.state} (${current.stateReason})`;
      // What came to a process, or into its spool, and the provider would take, must have been tried.
      const isLeftOver = [...spent.values()].some(
        ({ successor, isRead, by }) =>
          successor.startsWith(row.userId) && isRead && !by.isDead && !spent.has(successor),
      );
      if (isFlagged && isLeftOver && !ended.has(row.userId)) return "given up although a successor was there, and good";
    }
    return undefined;
  }
}

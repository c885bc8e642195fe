import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type ChildRelay, startChildRelay } from "./child-relay.js";
import { type GateProvider, startGateProvider } from "./gate-provider.js";
import { textOf } from "./normal-calls.js";
import { holdsWithin } from "./poll.js";
import { held, type Row, told } from "./report.js";
import { countsOf, createRestRows } from "./rest-rows.js";

const MIB = 1024 * 1024;
const MAX_BUFFERED_MIB = 16;
const ANSWER_MIB = 1;
const CALLS = 100;
const SETTLE_MS = 20_000;
const QUIET_MS = 2_000;

/**
 * Many large answers at once with a small budget: each provider holds its last byte back until every call either has
 * all the rest or was refused, so that those that then succeed were in memory together.
 */
export async function runMemoryBudget(): Promise<Row[]> {
  const gate = await startGateProvider(ANSWER_MIB * MIB);
  const relay = await startChildRelay({
    providers: { gate: gate.origin },
    env: { RELAY_MAX_BUFFERED_BYTES: String(MAX_BUFFERED_MIB * MIB) },
  });
  const rest = createRestRows(relay);
  try {
    const before = relay.rssMib();
    let refused = 0;
    const call = async () => {
      const result = await rest.call("gate", `${gate.origin}/`);
      if (result !== "success") refused++;
      return result;
    };
    const calls = Array.from({ length: CALLS }, call);
    const wasDecided = await isDecided(() => refused, gate);
    const rss = relay.rssMib();
    gate.letGo();
    const counts = countsOf(await Promise.all(calls));
    const heldMib = (counts.get("success") ?? 0) * ANSWER_MIB;
    const isPlain = [...counts.keys()].every((result) => result === "success" || result === "OVERLOADED");
    return [
      held(`${CALLS} answers of ${ANSWER_MIB} MiB at once`, textOf(counts), wasDecided && isPlain && refused > 0),
      held(`answers held together, of ${MAX_BUFFERED_MIB} MiB`, `${heldMib} MiB`, heldMib <= MAX_BUFFERED_MIB),
      told("resident memory, MiB: before → all held", `${before} → ${rss}`),
      await oneByOne("calls afterwards, one by one", call, gate),
      ...(await stalledRows(relay, call, gate)),
      held("the relay runs", relay.isRunning() ? "yes" : "no", relay.isRunning()),
    ];
  } finally {
    await rest.close();
    await relay.close();
    await gate.close();
  }
}

/** Every call is refused or waits for its last byte, and nothing has changed for a while: the relay has read the rest. */
async function isDecided(refused: () => number, gate: GateProvider): Promise<boolean> {
  let last = -1;
  let sinceMs = performance.now();
  return holdsWithin(SETTLE_MS, () => {
    if (refused() !== last) sinceMs = performance.now();
    last = refused();
    return last > 0 && last + gate.waiting() === CALLS && performance.now() - sinceMs > QUIET_MS;
  });
}

/** Several times as many as fit together. */
async function oneByOne(what: string, call: () => Promise<string>, gate: GateProvider): Promise<Row> {
  const results: string[] = [];
  for (let at = 0; at < 3 * MAX_BUFFERED_MIB; at++) {
    const one = call();
    await holdsWithin(SETTLE_MS, () => gate.waiting() === 1);
    gate.letGo();
    results.push(await one);
  }
  const counts = countsOf(results);
  return held(what, textOf(counts), counts.get("success") === results.length);
}

/** Uploads of twice the budget that stop before their last byte, from clients without a key. */
async function stalledRows(relay: ChildRelay, call: () => Promise<string>, gate: GateProvider): Promise<Row[]> {
  const stalled = await Promise.all(Array.from({ length: MAX_BUFFERED_MIB }, () => stall(relay.port, 2 * MIB)));
  const row = await oneByOne(`the same beside stalled uploads of ${2 * MAX_BUFFERED_MIB} MiB`, call, gate);
  for (const socket of stalled) socket.destroy();
  return [row];
}

async function stall(port: number, length: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.on("error", () => {
    // It has to give way to the others.
  });
  socket.resume();
  socket.write(`POST /oauth/method/gate/call HTTP/1.1\r\nHost: relay.test\r\nContent-Length: ${length}\r\n\r\n`);
  socket.write(Buffer.alloc(length - 1, " "));
  return socket;
}

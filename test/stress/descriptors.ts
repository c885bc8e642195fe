import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { Pool } from "undici";
import { type ChildRelay, startChildRelay } from "./child-relay.js";
import { startLabelProvider } from "./label-provider.js";
import { performNormalCalls, problemOf, textOf } from "./normal-calls.js";
import { holdsWithin } from "./poll.js";
import { held, type Row, told } from "./report.js";
import { countsOf } from "./rest-rows.js";

const MAX_DESCRIPTORS = 256;
const CROWD = 600;
const RECOVERY_MS = 20_000;

/** Longer than an idle socket to a provider is kept, so that calls need a new one. */
const EXHAUSTED_MS = 8_000;

/** A relay that runs out of file descriptors sheds load, lives, and serves again as soon as there are some. */
export async function runDescriptors(): Promise<Row[]> {
  const normal = await startLabelProvider(new Map());
  const relay = await startChildRelay({ providers: { normal: normal.origin }, maxDescriptors: MAX_DESCRIPTORS });
  // Its connection is there before the others come.
  const known = new Pool(relay.url, { connections: 1, keepAliveTimeout: 60_000 });
  try {
    const first = await problemOf(known, relay.publicKey, normal.origin, "first");
    const crowd = openCrowd(relay.port);
    const during = await callsDuring(relay, known, normal.origin);
    crowd.stop();
    return [
      held("a call before", first ?? "success", first === undefined),
      ...during,
      ...(await recoveryRows(relay, normal.origin)),
      held("the relay runs", relay.isRunning() ? "yes" : "no", relay.isRunning()),
    ];
  } finally {
    await known.destroy();
    await relay.close();
    await normal.close();
  }
}

/** Connections that send nothing, and come again when they are turned away. */
function openCrowd(port: number): { stop(): void } {
  const sockets = new Set<Socket>();
  let isStopped = false;
  const open = () => {
    if (isStopped) return;
    const socket = connect(port, "127.0.0.1");
    sockets.add(socket);
    socket.resume();
    socket.on("error", () => {
      // Turned away.
    });
    socket.on("close", () => {
      sockets.delete(socket);
      setTimeout(open, 100).unref();
    });
  };
  for (let at = 0; at < CROWD; at++) open();
  return {
    stop() {
      isStopped = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function callsDuring(relay: ChildRelay, known: Pool, origin: string): Promise<Row[]> {
  const results: string[] = [];
  const cpuBefore = relay.cpuSeconds() ?? 0;
  await delay(EXHAUSTED_MS);
  for (let at = 0; at < 20; at++) {
    results.push((await problemOf(known, relay.publicKey, origin, `known-${at}`)) ?? "success");
    await delay(50);
  }
  const share = ((relay.cpuSeconds() ?? 0) - cpuBefore) / (EXHAUSTED_MS / 1000 + 1);
  return [
    told(`sockets of the relay, at most ${MAX_DESCRIPTORS}, with ${CROWD} clients`, relay.sockets()),
    told("calls over a connection that was there before", textOf(countsOf(results))),
    told("processor time meanwhile", `${Math.round(share * 100)} %`),
  ];
}

async function recoveryRows(relay: ChildRelay, origin: string): Promise<Row[]> {
  const freedAt = performance.now();
  const once = () => performNormalCalls(relay, origin, { calls: 1, concurrency: 1 });
  const hasRecovered = await holdsWithin(RECOVERY_MS, async () => (await once()).succeeded === 1);
  const seconds = ((performance.now() - freedAt) / 1000).toFixed(1);
  const { calls, succeeded, failures } = await performNormalCalls(relay, origin, { calls: 200, concurrency: 20 });
  return [
    held("served again after", `${seconds} s`, hasRecovered),
    held("calls afterwards", `${succeeded} of ${calls} ${textOf(failures)}`.trim(), failures.size === 0),
  ];
}

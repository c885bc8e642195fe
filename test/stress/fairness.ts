import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Target } from "./adversary.js";
import { type ChildRelay, startChildRelay } from "./child-relay.js";
import { startLabelProvider } from "./label-provider.js";
import { type NormalResult, performNormalCalls, textOf } from "./normal-calls.js";
import { held, type Row, told } from "./report.js";

const ADVERSARY = fileURLToPath(new URL("adversary.ts", import.meta.url));

/** The token of its users, as a provider may choose it: as long as it gets, and almost a piece of its answers of `a`. */
const HOSTILE_TOKEN = `${"a".repeat(7000)}/${"a".repeat(6999)}`;

/** How much longer the slowest calls of another application may take than on a quiet relay. */
const MAX_RATIO = 5;
const CALLS = 1000;
const CONCURRENCY = 4;
const AT_LEAST_MS = 15_000;
/** Until those who do not read hold what they can get. */
const ONSET_MS = 3000;
/** Much longer than calls of a relay that cares for none but the greedy one. */
const AT_MOST_MS = 60_000;

/**
 * One application's calls while another one has a hostile provider, 40 callers that do not read, and a flood of
 * pipelined requests, and nobody reads the log.
 *
 * They are compared with calls of a second relay meanwhile, which is quiet: the attack and its relay take of a small
 * machine what they can get, so that calls of every process wait for a processor.
 */
export async function runFairness(): Promise<Row[]> {
  const normal = await startLabelProvider(new Map());
  const adversary = fork(ADVERSARY, { execArgv: ["--import", "tsx"], env: { PATH: process.env["PATH"] } });
  const relays: ChildRelay[] = [];
  try {
    const [hostile] = (await once(adversary, "message")) as [Record<string, string>];
    const providers = { normal: normal.origin, ...hostile };
    const start = async () => {
      const relay = await startChildRelay({ providers, hasStalledLog: true, accessToken: HOSTILE_TOKEN });
      relays.push(relay);
      return relay;
    };
    const [relay, other] = [await start(), await start()];
    const measure = ({ url, otherKey }: ChildRelay, calls: number, atLeastMs: number) => {
      const client = { url, publicKey: otherKey };
      return performNormalCalls(client, normal.origin, { calls, concurrency: CONCURRENCY, atLeastMs });
    };
    for (const each of relays) await measure(each, CALLS, 0);
    const alone = await measure(other, CALLS, AT_LEAST_MS / 3);
    const { url, port, publicKey } = relay;
    adversary.send({ url, port, publicKey } satisfies Target);
    await delay(ONSET_MS);
    const quiet = await measure(other, 1, AT_LEAST_MS);
    const besieged = await Promise.race([measure(relay, 1, AT_LEAST_MS), delay(AT_MOST_MS, undefined, { ref: false })]);
    const rows =
      besieged === undefined ? [held("besieged", `no end after ${AT_MOST_MS} ms`, false)] : judge(quiet, besieged);
    const running = held("the relay runs", relay.isRunning() ? "yes" : "no", relay.isRunning());
    return [...rowsOf("nothing else", alone), ...rows, running];
  } finally {
    await stop(adversary);
    for (const relay of relays) await relay.close();
    await normal.close();
  }
}

function judge(quiet: NormalResult, besieged: NormalResult): Row[] {
  const ratio = besieged.p99Ms / quiet.p99Ms;
  return [
    ...rowsOf("quiet", quiet),
    ...rowsOf("besieged", besieged),
    held(`99th percentile besieged / quiet, below ${MAX_RATIO}`, ratio.toFixed(2), ratio < MAX_RATIO),
  ];
}

function rowsOf(when: string, { calls, succeeded, medianMs, p99Ms, failures }: NormalResult): Row[] {
  const failed = failures.size === 0 ? "" : ` (${textOf(failures)})`;
  return [
    held(
      `${when}: calls of the other application that succeeded`,
      `${succeeded} of ${calls}${failed}`,
      succeeded === calls,
    ),
    told(`${when}: median, 99th percentile`, `${medianMs.toFixed(2)} ms, ${p99Ms.toFixed(2)} ms`),
  ];
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

import { type ChildRelay, startChildRelay } from "./child-relay.js";
import { startHostileCallers, startHostileProviders } from "./hostile-providers.js";
import { startLabelProvider } from "./label-provider.js";
import { type NormalResult, performNormalCalls, textOf } from "./normal-calls.js";
import { holdsWithin } from "./poll.js";
import { held, type Row, told } from "./report.js";
import { startSlowLoris } from "./slow-loris.js";

/** How much is held against the normal calls. */
export interface LoadSize {
  /** Normal calls in each of the three runs. */
  readonly calls: number;
  readonly concurrency: number;
  /** Slow-loris connections. */
  readonly loris: number;
  /** Calls to dripping providers. */
  readonly drips: number;
  /** Callers of providers that flood with 103 answers, fast ones and slow ones. */
  readonly floods: number;
}

/** Longer than the 10 s after which the relay cuts a header section that drips, so that they come again. */
const SIEGE_MS = 15_000;
/** Idle sockets of the relay to providers are closed after 4 s. */
const SETTLE_MS = 10_000;

/** Normal calls before, during and after a siege (threats I15, P03, P04, P29). */
export async function runLoad(size: LoadSize): Promise<Row[]> {
  const normal = await startLabelProvider(new Map());
  const hostile = await startHostileProviders();
  const { drip, flood, trickle } = hostile;
  const providers = { normal: normal.origin, drip: drip.origin, flood: flood.origin, trickle: trickle.origin };
  const relay = await startChildRelay({ providers });
  try {
    const { concurrency } = size;
    const measure = (calls: number, atLeastMs = 0) =>
      performNormalCalls(relay, normal.origin, { calls, concurrency, atLeastMs });
    await measure(Math.ceil(size.calls / 2));
    const before = { rss: relay.rssMib(), sockets: relay.sockets() ?? 0 };
    const quiet = await measure(size.calls);
    const siege = await besiege(relay, hostile, size, () => measure(size.calls, SIEGE_MS));
    const hasSettled = await holdsWithin(SETTLE_MS, () => (relay.sockets() ?? 0) <= before.sockets);
    const settled = relay.sockets();
    const after = await measure(size.calls);
    return [
      ...siege.rows,
      ...rowsOf("quiet", quiet),
      ...rowsOf("besieged", siege.result),
      ...rowsOf("afterwards", after),
      told("median besieged / quiet", (siege.result.medianMs / quiet.medianMs).toFixed(2)),
      held("sockets before → after", `${before.sockets} → ${settled}`, hasSettled),
      told("resident memory, MiB: before → besieged → after", `${before.rss} → ${siege.rss} → ${relay.rssMib()}`),
      held("the relay runs", relay.isRunning() ? "yes" : "no", relay.isRunning()),
    ];
  } finally {
    await relay.close();
    await hostile.close();
    await normal.close();
  }
}

async function besiege(
  relay: ChildRelay,
  { drip, flood, trickle }: Awaited<ReturnType<typeof startHostileProviders>>,
  { loris, drips, floods }: LoadSize,
  measure: () => Promise<NormalResult>,
): Promise<{ rows: Row[]; result: NormalResult; rss: number | undefined }> {
  const slow = startSlowLoris(relay.port, loris);
  const callers = [
    startHostileCallers(relay, "drip", drip.origin, drips),
    startHostileCallers(relay, "flood", flood.origin, Math.ceil(floods / 2)),
    startHostileCallers(relay, "trickle", trickle.origin, Math.floor(floods / 2)),
  ];
  const isHeld = () => slow.held() >= loris * 0.95 && drip.open.size >= drips * 0.95;
  const wasHeld = await holdsWithin(SETTLE_MS, isHeld);
  const result = await measure();
  // Those whose deadline has just passed are begun again.
  const isStillHeld = await holdsWithin(SETTLE_MS, isHeld);
  const rows = [
    held("slow-loris connections held (opened)", `${slow.held()} (${slow.opened()})`, wasHeld && isStillHeld),
    told("dripping answers held", drip.open.size),
    told("calls ended by floods of 103: fast, slow", `${callers[1]?.ended()}, ${callers[2]?.ended()}`),
  ];
  const rss = relay.rssMib();
  slow.stop();
  await Promise.all(callers.map((each) => each.stop()));
  return { rows, result, rss };
}

function rowsOf(when: string, { calls, succeeded, medianMs, p99Ms, failures }: NormalResult): Row[] {
  const failed = failures.size === 0 ? "" : ` (${textOf(failures)})`;
  return [
    held(`${when}: normal calls that succeeded`, `${succeeded} of ${calls}${failed}`, succeeded === calls),
    told(`${when}: median, 99th percentile`, `${medianMs.toFixed(2)} ms, ${p99Ms.toFixed(2)} ms`),
  ];
}

import { type Harness, type HarnessOptions, startHarness, type TestApplication } from "../support/harness.js";
import { type Bystander, startBystander } from "./bystander.js";
import { type CampaignResult, findingOfRun, mustHold } from "./campaign.js";
import { type Canaries, createCanaries, type LeakFinder } from "./canary.js";
import type { Exploration } from "./explore.js";
import { createLogWatch, type LogWatch } from "./log-watch.js";
import { measureUsage, textFromUsage, type Usage } from "./memory.js";
import { createSurfaces, type FuzzCall, type SurfaceAnswer, type SurfaceName, type Surfaces } from "./surfaces.js";
import { startWireProvider, type WireProvider } from "./wire-provider.js";

/** One user, who makes one call at a time; its token tells its requests from all others. */
export interface Worker {
  readonly userId: string;
  readonly token: string;
}

/** A relay in this process with a provider of bytes behind it, and everything the promises are checked with. */
export interface Bench {
  readonly harness: Harness;
  /** Its provider name is `wire`; also listed as `localhost`. */
  readonly provider: WireProvider;
  /** On 127.0.0.1 and on 127.0.0.2: whatever they accept is a finding. */
  readonly bystanders: readonly [evil: Bystander, internal: Bystander];
  readonly workers: readonly Worker[];
  readonly application: TestApplication;
  readonly canaries: Canaries;
  /** Sends a call and checks what holds of every answer: in time, nothing in it that `findLeak` finds. */
  send(surface: SurfaceName, call: FuzzCall, findLeak?: LeakFinder): Promise<SurfaceAnswer>;
  /** Closes everything, checks what holds of the whole run, and sums up. */
  finish(exploration: Exploration): Promise<CampaignResult>;
}

/** What a campaign chooses. */
export interface BenchOptions extends Pick<HarnessOptions, "env" | "providers" | "upstream"> {
  readonly workers: number;
  readonly deadlineMs?: number;
}

/** A call ends by its deadline and this. */
const GRACE_MS = 2_000;
/** Growth of heap and buffers that is noise: caches and compiled code of the tools. */
const MAX_GROWTH_MIB = 32;
/** An idle socket to a provider is kept for 4 s; undici counts in seconds. */
const IDLE_MS = 10_000;
/** From so many inputs on there is time to wait for that. */
const LONG_RUN = 1_000;
/** The relay closes its sockets when it closes. */
const CLOSE_MS = 2_000;

/** Starts all servers, the relay, an application and one connected user per worker. */
export async function startBench(options: BenchOptions): Promise<Bench> {
  const { sockets } = await measureUsage();
  const deadlineMs = options.deadlineMs ?? 10_000;
  const canaries = createCanaries(options.workers);
  const log = createLogWatch(canaries.findPart);
  const provider = await startWireProvider(["127.0.0.1", "localhost"]);
  const bystanders = [await startBystander("127.0.0.1"), await startBystander("127.0.0.2")] as const;
  const harness = await startHarness({
    ...options,
    env: { RELAY_DEADLINE_MS: String(deadlineMs), ...options.env },
    providers: [wireDefinition(provider), ...(options.providers ?? [])],
    onLogLine: log.add,
  });
  const application = await harness.createApplication();
  const workers = canaries.tokens.map((token, at) => ({ userId: `user-${at}`, token }));
  for (const { userId, token } of workers) {
    provider.take(token);
    await harness.connect(application, userId, { providerName: "wire", accessToken: token });
  }
  const surfaces = createSurfaces(harness.url, application, deadlineMs);
  const before = { ...(await measureUsage()), sockets };
  const parts = { harness, provider, bystanders, workers, application, canaries };
  return {
    ...parts,
    send: (surface, call, findLeak = canaries.findPart) => sendChecked(surfaces, findLeak, surface, call),
    finish: (exploration) => finish(parts, surfaces, log, exploration, before),
  };
}

function wireDefinition({ port }: WireProvider): object {
  return { name: "wire", apiOrigins: [`http://127.0.0.1:${port}`, `http://localhost:${port}`] };
}

async function sendChecked(surfaces: Surfaces, findLeak: LeakFinder, surface: SurfaceName, call: FuzzCall) {
  const answer = await surfaces.send(surface, call);
  mustHold(answer.lateMs <= GRACE_MS, `${surface} ended a call ${GRACE_MS} ms or more after its deadline`);
  const leak = findLeak(answer.text) ?? findLeak(JSON.stringify(answer.headers));
  mustHold(leak === undefined, `${surface} answered with the token, ${leak}`);
  return answer;
}

async function finish(
  { harness, provider, bystanders }: Pick<Bench, "harness" | "provider" | "bystanders">,
  surfaces: Surfaces,
  log: LogWatch,
  exploration: Exploration,
  before: Usage,
): Promise<CampaignResult> {
  const problems: string[] = [];
  await surfaces.close();
  const isLong = exploration.tried >= LONG_RUN;
  if (isLong && !(await settles(provider.idle(), IDLE_MS))) problems.push(`${provider.open} idle sockets stay open`);
  await harness.close();
  if (!(await settles(provider.idle(), CLOSE_MS))) problems.push(`${provider.open} provider sockets stay open`);
  await provider.close();
  for (const bystander of bystanders) {
    if (bystander.accepted > 0) problems.push(`${bystander.authority} was contacted ${bystander.accepted} times`);
    await bystander.close();
  }
  const { lines, problems: logProblems } = log.read();
  const after = await measureUsage();
  if (after.sockets > before.sockets) problems.push(`${after.sockets - before.sockets} sockets stay open`);
  if (after.usedMib - before.usedMib > MAX_GROWTH_MIB) problems.push("memory does not come back to the baseline");
  problems.push(...provider.faults, ...logProblems);
  const notes = [`${surfaces.calls} calls, ${lines} log lines`, textFromUsage(before, after)];
  const findings = [...exploration.findings, ...problems.map(findingOfRun)];
  return { tried: exploration.tried, notes, findings };
}

async function settles(promise: Promise<void>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, false);
  });
  try {
    return await Promise.race([promise.then(() => true), timeout]);
  } finally {
    clearTimeout(timer);
  }
}

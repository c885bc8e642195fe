import { setTimeout as pause } from "node:timers/promises";
import { type Bystander, startBystander } from "./bystander.js";
import { type Campaign, type CampaignResult, findingOfRun } from "./campaign.js";
import { type Exploration, explore, exploreList, joined } from "./explore.js";
import { makeGoodCalls } from "./good-call.js";
import { textFromUsage, type Usage } from "./memory.js";
import { createRawChecks } from "./raw-checks.js";
import { generatedInputs } from "./raw-inputs.js";
import { createRows } from "./raw-rows.js";
import { type RelayProcess, startRelayProcess } from "./relay-process.js";

const WORKERS = 32;
/** Inputs that make the relay and its tools load what they use, before memory is measured. */
const WARM_UP = 300;
/** What a process may keep that it did not have after the warm-up, in heap and buffers. */
const MAX_GROWTH_MIB = 24;
/** From so many inputs on there is time to wait for sockets that only the relay's own timers close. */
const LONG_RUN = 2_000;
/** Idle sockets to a provider go after 4 s; HTTP/2 connections given up go after half a minute. */
const SETTLE_TRIES = 90;
const SETTLE_EVERY_MS = 500;
/** Sockets that listen: both ports of the relay, and its sandbox. */
const LISTENING = 3;

/** Raw bytes on the public port of a relay in a process of its own: it lives, serves, and gives everything back. */
export const fuzzRaw: Campaign = async ({ count, seed }) => {
  const relay = await startRelayProcess();
  const evil = await startBystander("127.0.0.1");
  try {
    const checks = createRawChecks(relay);
    const inputs = generatedInputs(relay, `http://${evil.authority}/`);
    const warmUp = Math.min(WARM_UP, count >> 1);
    const warmedUp = await explore(inputs, checks.input, { count: warmUp, seed: seed + 1, workers: WORKERS });
    const before = await usageOf(relay, count);
    const exploration = joined(
      warmedUp,
      await exploreList(createRows(relay), checks.row, WORKERS),
      await explore(inputs, checks.input, { count: count - warmUp, seed, workers: WORKERS }),
      await exploreList(["a good call at the end"], () => makeGoodCalls(relay), 1),
    );
    return await sumUp(relay, evil, exploration, before, checks.givenUp);
  } finally {
    await relay.stop();
    await evil.close();
  }
};

async function sumUp(
  relay: RelayProcess,
  evil: Bystander,
  { tried, findings }: Exploration,
  before: Usage,
  givenUp: number,
): Promise<CampaignResult> {
  const after = await usageOf(relay, tried);
  const { log } = await relay.measure();
  const left = await relay.stop();
  const problems = [...log.problems];
  const stray = tried >= LONG_RUN ? after.sockets - LISTENING : (left?.sockets ?? 0);
  if (stray > 0) problems.push(`${stray} sockets of the relay stay open`);
  if (after.usedMib - before.usedMib > MAX_GROWTH_MIB) problems.push("memory does not come back to the baseline");
  if (evil.accepted > 0) problems.push(`${evil.authority} was contacted ${evil.accepted} times`);
  if (relay.trouble !== "") problems.push(`the relay wrote to standard error: ${relay.trouble.trim()}`);
  const notes = [
    `${log.lines} log lines; ${givenUp} HTTP/2 connections given up after a protocol error`,
    `relay: ${textFromUsage(before, after)}`,
  ];
  return { tried, notes, findings: [...findings, ...problems.map(findingOfRun)] };
}

/** Memory and sockets; in a long run when idle sockets have gone. */
async function usageOf(relay: RelayProcess, inputs: number): Promise<Usage> {
  let { usage } = await relay.measure();
  for (let tries = inputs < LONG_RUN ? SETTLE_TRIES : 0; tries < SETTLE_TRIES; tries += 1) {
    if (usage.sockets <= LISTENING) break;
    await pause(SETTLE_EVERY_MS);
    ({ usage } = await relay.measure());
  }
  return usage;
}

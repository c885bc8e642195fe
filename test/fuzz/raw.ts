import { setTimeout as pause } from "node:timers/promises";
import { PREFACE } from "../listener/frames.js";
import { type Bystander, startBystander } from "./bystander.js";
import { type Campaign, type CampaignResult, type Finding, mustHold } from "./campaign.js";
import { createLeakFinder, PART_LENGTH } from "./canary.js";
import { type Exploration, explore, exploreList, joined } from "./explore.js";
import { makeGoodCalls } from "./good-call.js";
import { textFromUsage, type Usage } from "./memory.js";
import { exchangeRaw, type RawSend } from "./raw-exchange.js";
import { generatedInputs, type RawInput, sendFrom } from "./raw-inputs.js";
import { isGivenUp, judgeOutcome } from "./raw-judge.js";
import { createRows, type RawRow } from "./raw-rows.js";
import { type RelayProcess, startRelayProcess } from "./relay-process.js";

const WORKERS = 32;
const GOOD_CALL_EVERY = 500;
/** Inputs that make the relay and its tools load what they use, before memory is measured. */
const WARM_UP = 300;
/** What a process may keep that it did not have after the warm-up. */
const MAX_GROWTH_MIB = 24;
/** Idle sockets to a provider go after 4 s, undici counts in seconds; HTTP/2 connections given up go after half a minute. */
const SETTLE_TRIES = 90;
const SETTLE_EVERY_MS = 500;
/** From so many inputs on there is time to wait for all sockets. */
const LONG_RUN = 2_000;
/** Sockets of the relay and of its sandbox that listen. */
const LISTENING = 2;
/** How long the relay may take to close what the client has ended. */
const CLOSE_MS = 8_000;
/** After a protocol error it takes much longer than there is time for here. */
const CLOSE_GIVEN_UP_MS = 50;
/** Rows must be answered. */
const ROW_PATIENCE_MS = 5_000;

/** Raw bytes on the public port of a relay in a process of its own: it lives, serves, and gives everything back. */
export const fuzzRaw: Campaign = async ({ count, seed }) => {
  const relay = await startRelayProcess();
  const evil = await startBystander("127.0.0.1");
  try {
    const checks = createChecks(relay);
    const inputs = generatedInputs(relay, `http://${evil.authority}/`);
    const warmUp = Math.min(WARM_UP, count);
    const warmedUp = await explore(inputs, checks.input, { count: warmUp, seed: seed + 1, workers: WORKERS });
    const before = await settledUsage(relay, LISTENING + checks.givenUp);
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

interface Checks {
  /** HTTP/2 connections that were given up; the relay may keep them until its idle timeout. */
  readonly givenUp: number;
  input(input: RawInput): Promise<void>;
  row(row: RawRow): Promise<void>;
}

function createChecks(relay: RelayProcess): Checks {
  const port = Number(new URL(relay.url).port);
  const findLeak = createLeakFinder(relay.token, PART_LENGTH);
  let tried = 0;
  let givenUp = 0;
  const exchange = async (send: Omit<RawSend, "closeMs">, bytes: Buffer) => {
    const isHttp2 = bytes.subarray(0, PREFACE.length).equals(PREFACE);
    const closeMs = (received: Buffer) => (isHttp2 && isGivenUp(received) ? CLOSE_GIVEN_UP_MS : CLOSE_MS);
    // Who resets at once does not learn whether the connection was given up.
    const end = isHttp2 && send.end === "reset" ? "resetLater" : send.end;
    const outcome = await exchangeRaw(port, { ...send, end, closeMs });
    mustHold(relay.trouble === "", `the relay is in trouble: ${relay.trouble.trim()}`);
    if (isHttp2 && isGivenUp(outcome.received)) givenUp += 1;
    return judgeOutcome(outcome, isHttp2, findLeak);
  };
  return {
    get givenUp() {
      return givenUp;
    },
    async input(input) {
      tried += 1;
      if (tried % GOOD_CALL_EVERY === 0) await makeGoodCalls(relay);
      await exchange(sendFrom(input), input.bytes);
    },
    async row({ name, bytes, expect, end = "endLater" }) {
      const text = await exchange({ writes: [bytes], end, patienceMs: ROW_PATIENCE_MS }, bytes);
      mustHold(expect.test(text), `${name}: ${JSON.stringify(text.slice(0, 300))}`);
    },
  };
}

async function sumUp(
  relay: RelayProcess,
  evil: Bystander,
  { tried, findings }: Exploration,
  before: Usage,
  givenUp: number,
): Promise<CampaignResult> {
  const mayRemain = tried < LONG_RUN ? givenUp : 0;
  const after = await settledUsage(relay, LISTENING + mayRemain);
  const { log } = await relay.measure();
  const problems = [...log.problems];
  const stray = after.sockets - LISTENING - mayRemain;
  if (stray > 0) problems.push(`${stray} sockets of the relay stay open`);
  if (after.usedMib - before.usedMib > MAX_GROWTH_MIB) problems.push("memory does not come back to the baseline");
  if (evil.accepted > 0) problems.push(`${evil.authority} was contacted ${evil.accepted} times`);
  if (relay.trouble !== "") problems.push(`the relay wrote to standard error: ${relay.trouble.trim()}`);
  const notes = [
    `${log.lines} log lines`,
    `relay: ${textFromUsage(before, after)}`,
    `${givenUp} HTTP/2 connections given up after a protocol error`,
  ];
  return { tried, notes, findings: [...findings, ...problems.map(findingOfRun)] };
}

/** Memory and sockets when idle sockets have gone, which only the relay's own timers decide. */
async function settledUsage(relay: RelayProcess, sockets: number): Promise<Usage> {
  let { usage } = await relay.measure();
  for (let tries = 0; tries < SETTLE_TRIES && usage.sockets > sockets; tries += 1) {
    await pause(SETTLE_EVERY_MS);
    ({ usage } = await relay.measure());
  }
  return usage;
}

function findingOfRun(problem: string): Finding {
  return { problem, input: "the whole run", origin: "checked at its end" };
}

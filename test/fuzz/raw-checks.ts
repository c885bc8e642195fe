import { setTimeout as pause } from "node:timers/promises";
import { PREFACE } from "../http/frames.js";
import { mustHold } from "./campaign.js";
import { createLeakFinder, PART_LENGTH } from "./canary.js";
import { makeGoodCalls } from "./good-call.js";
import { exchangeRaw, type RawSend } from "./raw-exchange.js";
import { type RawInput, sendFrom } from "./raw-inputs.js";
import { isGivenUp, judgeOutcome } from "./raw-judge.js";
import type { RawRow } from "./raw-rows.js";
import type { RelayProcess } from "./relay-process.js";

/** What is checked of each input. */
export interface RawChecks {
  /** HTTP/2 connections that were given up after a protocol error. */
  readonly givenUp: number;
  input(input: RawInput): Promise<void>;
  row(row: RawRow): Promise<void>;
}

const GOOD_CALL_EVERY = 500;
/** How long the relay may take to close what the client has ended. */
const CLOSE_MS = 8_000;
/** After a protocol error it takes longer than there is time for here. */
const CLOSE_GIVEN_UP_MS = 50;
/** So many connections may be open at the relay; then the campaign waits. */
const MAX_SOCKETS = 2_500;
const ROOM_EVERY_MS = 1_000;
/** Rows must be answered. */
const ROW_PATIENCE_MS = 5_000;

/** Sends inputs to a relay and judges what comes back; every now and then a good call must succeed. */
export function createRawChecks(relay: RelayProcess): RawChecks {
  const port = Number(new URL(relay.url).port);
  const findLeak = createLeakFinder(relay.token, PART_LENGTH);
  let tried = 0;
  let givenUp = 0;
  let room = Promise.resolve();
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
      if (tried % GOOD_CALL_EVERY === 0) {
        room = room.then(() => waitForRoom(relay));
        await makeGoodCalls(relay);
      }
      await room;
      await exchange(sendFrom(input), input.bytes);
    },
    async row({ name, bytes, expect, quietMs }) {
      const text = await exchange({ writes: [bytes], end: "endLater", patienceMs: ROW_PATIENCE_MS, quietMs }, bytes);
      mustHold(expect.test(text), `${name}: ${JSON.stringify(text.slice(0, 300))}`);
    },
  };
}

/** Connections that were given up hold their place for half a minute, and there are 4,000 places. */
async function waitForRoom(relay: RelayProcess): Promise<void> {
  while ((await relay.measure()).usage.sockets > MAX_SOCKETS) await pause(ROOM_EVERY_MS);
}

import { mustHold } from "./campaign.js";
import type { LeakFinder } from "./canary.js";
import type { RawOutcome } from "./raw-exchange.js";

/** Type of the frame with which HTTP/2 gives a connection up, RFC 9113 section 6.8. */
const GOAWAY = 7;

/** What holds of whatever the relay answers to whatever bytes; returns the answer as latin1 text. */
export function judgeOutcome({ received, isClosed }: RawOutcome, isHttp2: boolean, findLeak: LeakFinder): string {
  const text = received.toString("latin1");
  const leak = findLeak(text);
  mustHold(leak === undefined, `the relay answered with the token, ${leak}`);
  mustHold(!text.includes("INTERNAL_ERROR"), "the relay answered INTERNAL_ERROR");
  mustHold(isClosed || isGivenUp(received), "a connection stays open after the client has ended its side");
  if (isHttp2 || text === "") return text;
  mustHold(/^HTTP\/1\.1 \d{3} /.test(text), "the relay answered with what is not HTTP/1.1");
  mustHold(!/(?:^|\n)HTTP\/1\.1 500 /.test(text), "the relay answered with a fault of its own");
  return text;
}

/**
 * Whether HTTP/2 was given up after a protocol error: node:http2 then reads no more, so that it does not see the client
 * go, and the connection is closed when it has been idle for long enough.
 */
export function isGivenUp(received: Buffer): boolean {
  for (let at = 0; at + 9 <= received.length; at += 9 + received.readUIntBE(at, 3)) {
    if (received[at + 3] === GOAWAY) return true;
  }
  return false;
}

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exchangeRaw } from "../fuzz/raw-exchange.js";
import { requestBlock } from "../fuzz/raw-http2.js";
import { isGivenUp } from "../fuzz/raw-judge.js";
import { END_HEADERS, frame, HEADERS, HELLO, RST_STREAM, uint32 } from "../http/frames.js";
import { type Harness, startHarness } from "../support/harness.js";

// Found by `npm run fuzz -- --only raw`: a caller that resets a stream in the middle of its typed message was logged as a
// fault of ours, at level error: 10,000 rapid resets wrote thousands of lines.

let harness: Harness;

beforeAll(async () => {
  harness = await startHarness();
});

afterAll(() => harness.close());

const PATHS = ["/relay.v1.RelayService/Call", "/oauth/method/sandbox/call?user_id=a&public_key=b"] as const;
const RESET = uint32(8);

describe("rapid resets", () => {
  it.each(PATHS)("are no faults of ours at %s", async (path) => {
    // Without a content-type: the call is refused, and its body then read and thrown away.
    const block = requestBlock("POST", path);
    const streams = Array.from({ length: 10_000 }, (_, at) => [
      frame(HEADERS, END_HEADERS, 2 * at + 1, block),
      frame(RST_STREAM, 0, 2 * at + 1, RESET),
    ]);
    // Far more than HTTP/2 puts up with: it gives the connection up, with some of the calls begun.
    const send = { writes: [Buffer.concat([HELLO, ...streams.flat()])], end: "endLater" as const, closeMs: () => 100 };
    const { received } = await exchangeRaw(Number(new URL(harness.url).port), send);
    expect(isGivenUp(received)).toBe(true);
    expect((await fetch(`${harness.url}/healthz`)).status).toBe(200);
    expect(harness.logLines.filter((line) => /"where":"(?:rpc|call|handler)"/.test(line))).toEqual([]);
  });
});

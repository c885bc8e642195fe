import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestBlock } from "../fuzz/raw-http2.js";
import { DATA, END_HEADERS, frame, HEADERS, HELLO, PING, RST_STREAM, uint32 } from "../listener/frames.js";
import { connectRaw } from "../listener/support.js";
import { type Harness, startHarness } from "../support/harness.js";

// Found by `npm run fuzz -- --only raw`: a caller that resets a stream in the middle of its typed message was logged as a
// fault of ours, at level error: 10,000 rapid resets wrote thousands of lines.

let harness: Harness;

beforeAll(async () => {
  harness = await startHarness();
});

afterAll(() => harness.close());

const ROUTES = [
  ["/relay.v1.RelayService/Call", "application/json"],
  ["/relay.v1.RelayService/Call", "application/proto"],
  ["/relay.v1.RelayService/Call", "application/grpc+proto"],
  ["/oauth/method/sandbox/call?user_id=a&public_key=b", "application/json"],
] as const;
const RESET = frame(RST_STREAM, 0, 1, uint32(8));
const END = Buffer.alloc(0);

describe("a caller that leaves in the middle of its message", () => {
  it.each([...ROUTES.map((route) => [...route, RESET] as const), ...ROUTES.map((route) => [...route, END] as const)])(
    "is no fault at %s as %s",
    async (path, type, last) => {
      const { socket, received, closed } = await connectRaw(Number(new URL(harness.url).port));
      const block = requestBlock("POST", path, [["content-type", type]]);
      socket.write(Buffer.concat([HELLO, frame(HEADERS, END_HEADERS, 1, block), frame(DATA, 0, 1, Buffer.from("{"))]));
      socket.write(frame(PING, 0, 0, Buffer.from("received")));
      await received("received");
      socket.end(last);
      await closed;
      // The relay has seen the end, and has had turns to say what it makes of it.
      expect((await fetch(`${harness.url}/healthz`)).status).toBe(200);
      expect(harness.logLines.filter((line) => line.includes('"fault"'))).toEqual([]);
    },
  );
});

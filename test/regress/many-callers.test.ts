import { type ClientHttp2Session, connect } from "node:http2";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness } from "../support/harness.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";

/** More than the 200 and 400 of the defaults; three thousand get through as well, and take three times as long. */
const CALLERS = 1000;
/** As many as one connection of HTTP/2 carries. */
const STREAMS = 100;
/** One application has eight ninths of what all may have. */
const ROOM = String(Math.ceil((CALLERS * 9) / 8) + 8);

let provider: RawProvider;
let harness: Harness;
/** Sockets of calls that have come to the provider. */
const held: Socket[] = [];
let onHeld = (): void => {};
const sessions: ClientHttp2Session[] = [];

beforeAll(async () => {
  provider = await startRawProvider((socket) => {
    held.push(socket);
    onHeld();
  });
  const env = {
    RELAY_DEADLINE_MS: "120000",
    RELAY_MAX_IN_FLIGHT: ROOM,
    RELAY_MAX_ORIGIN_CALLS: ROOM,
    RELAY_MAX_ORIGIN_WAITING: "0",
  };
  harness = await startHarness({
    env,
    providers: [{ name: "raw", apiOrigins: [provider.origin] }],
    onLogLine: () => {},
  });
});

afterAll(async () => {
  onHeld = () => {};
  for (const session of sessions) session.destroy();
  await harness.close();
  await provider.close();
});

describe("limits that are raised for a thousand callers of one provider", () => {
  it("let all of them in at once", async () => {
    const application = await harness.createApplication();
    await harness.connect(application, "u", { providerName: "raw" });
    const path = `/oauth/method/raw/call?user_id=u&public_key=${application.publicKey}`;
    const body = JSON.stringify({ url: `${provider.origin}/`, method: "GET" });
    const answers: Promise<string>[] = [];
    await new Promise<void>((resolve, reject) => {
      const call = () => {
        const session = sessions[Math.floor(answers.length / STREAMS)] ?? connect(harness.url);
        if (!sessions.includes(session)) sessions.push(session);
        const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/json" });
        stream.end(body);
        const answered = text(stream);
        answers.push(answered);
        // One that is answered before the provider answers was refused.
        void answered.then((early) => reject(new Error(early)), reject);
      };
      onHeld = () => {
        if (held.length === CALLERS) resolve();
        if (answers.length < CALLERS) call();
      };
      for (let first = 0; first < STREAMS; first++) call();
    });
    for (const socket of held) socket.end(answer("{}", "Content-Type: application/json"));
    const kinds = new Set((await Promise.all(answers)).map((row) => JSON.parse(row).rows[0].pincStatus));
    expect([kinds, held.length]).toEqual([new Set(["success"]), CALLERS]);
  }, 60_000);
});

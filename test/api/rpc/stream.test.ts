import type { Socket } from "node:net";
import { type Client, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CallStreamResponse, RelayService } from "../../../gen/relay/v1/relay_pb.js";
import { type Harness, startHarness, type TestApplication } from "../../support/harness.js";
import { type RawProvider, startRawProvider } from "../../support/raw-provider.js";
import { STREAM_TRANSPORTS } from "../../support/stream-callers.js";

const MIB = 1024 * 1024;
const EVENTS = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const PROTOCOLS = STREAM_TRANSPORTS.map(([protocol]) => protocol);

let provider: RawProvider;
/** The provider's side of the newest call. */
let socket: Socket;
let harness: Harness;
let application: TestApplication;
let clients: ReadonlyMap<string, Client<typeof RelayService>>;

beforeAll(async () => {
  provider = await startRawProvider((opened, { head }) => {
    socket = opened;
    if (head.includes("/events")) opened.write(EVENTS);
    if (head.includes("/endless")) fill(opened);
  });
  harness = await startHarness({ env: { RELAY_MAX_IN_FLIGHT: "2" }, providers: [definition()] });
  application = await harness.createApplication();
  await harness.connect(application, "u", { providerName: "raw" });
  clients = new Map(
    STREAM_TRANSPORTS.map(([protocol, transport]) => [protocol, createClient(RelayService, transport(harness.url))]),
  );
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

const definition = () => ({ name: "raw", apiOrigins: [provider.origin] });
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

/** Sends bytes as long as somebody takes them. */
function fill(opened: Socket): void {
  opened.write("HTTP/1.1 200 OK\r\n\r\n");
  const piece = Buffer.alloc(64 * 1024, "a");
  const more = () => {
    while (!opened.destroyed && opened.write(piece));
  };
  opened.on("drain", more);
  more();
}

function open(protocol: string, path: string, signal?: AbortSignal): AsyncIterator<CallStreamResponse> {
  const client = clients.get(protocol) as Client<typeof RelayService>;
  const call = { url: provider.origin + path, method: "GET" };
  const message = { providerName: "raw", userId: "u", publicKey: application.publicKey, call };
  return client.callStream(message, signal === undefined ? {} : { signal })[Symbol.asyncIterator]();
}

const calls = () => harness.logLines.filter((line) => line.includes('"msg":"call"')).length;

async function logged(count: number): Promise<void> {
  while (calls() < count) await new Promise((resolve) => setImmediate(resolve));
}

describe.each(PROTOCOLS)("CallStream over %s", (protocol) => {
  it("passes head and events on at once", async () => {
    const parts = open(protocol, "/events");
    expect((await parts.next()).value.part).toMatchObject({
      case: "head",
      value: { statusCode: 200, contentType: "text/event-stream", callId: expect.stringMatching(/^[0-9a-f-]{36}$/) },
    });
    for (const event of ["data: 1\n\n", "data: 2\n\n"]) {
      socket.write(chunk(event));
      const { part } = (await parts.next()).value as CallStreamResponse;
      expect([part.case, Buffer.from(part.value as Uint8Array).toString()]).toEqual(["chunk", event]);
    }
    socket.write("0\r\n\r\n");
    expect((await parts.next()).done).toBe(true);
  });

  it("ends with a row when the answer is cut short", async () => {
    const parts = open(protocol, "/events");
    await parts.next();
    socket.end();
    expect((await parts.next()).value.part).toMatchObject({
      case: "row",
      value: { pincStatus: "error", errorType: "PROVIDER_RESPONSE_INVALID", statusCode: 502 },
    });
    expect((await parts.next()).done).toBe(true);
  });

  it.each(["/silence", "/events", "/endless"])(
    "ends the call at the provider when the caller goes: %s",
    async (path) => {
      const before = calls();
      const seen = provider.requests.length;
      const controller = new AbortController();
      const parts = open(protocol, path, controller.signal);
      const first = parts.next().catch((error: unknown) => error);
      await provider.seen(seen + 1);
      if (path !== "/silence") await first;
      controller.abort();
      await provider.letGo(seen);
      await logged(before + 1);
      expect(harness.logLines.join("")).not.toContain('"fault"');
    },
  );

  it("takes little from the provider while the caller takes nothing", async () => {
    const controller = new AbortController();
    const seen = provider.requests.length;
    const parts = open(protocol, "/endless", controller.signal);
    await parts.next();
    let written = -1;
    while (written !== socket.bytesWritten) {
      written = socket.bytesWritten;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(written).toBeLessThan(32 * MIB);
    controller.abort();
    await provider.letGo(seen);
  });

  it("counts as a call in flight until it ends", async () => {
    const controller = new AbortController();
    const seen = provider.requests.length;
    const held = [1, 2].map(() => open(protocol, "/events", controller.signal));
    for (const parts of held) await parts.next();
    const before = calls();
    const refused = open(protocol, "/events");
    expect((await refused.next()).value.part).toMatchObject({ case: "row", value: { errorType: "OVERLOADED" } });
    expect((await refused.next()).done).toBe(true);
    controller.abort();
    await logged(before + 3);
    for (const at of held.keys()) await provider.letGo(seen + at);
  });
});

import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../../support/harness.js";
import { readAnswer } from "./via-bed.js";

/** Methods whose bodies have no meaning (RFC 9110 section 9.3), and some that a server may not know. */
const METHODS = ["GET", "DELETE", "OPTIONS", "REPORT", "SEARCH", "LOCK"];
/** The beginning of a request, which makes the next one on the connection a part of itself. */
const HIDDEN = "GET /hidden HTTP/1.1\r\nX-Rest: ";

/** A provider that reads no body, whatever a head says: what follows it is the next one. */
interface CarelessProvider {
  readonly host: string;
  /** What it takes for the head of a request, and on which of its connections that came. */
  readonly heads: ReadonlyArray<{ readonly connection: number; readonly text: string }>;
  close(): void;
}

async function startCareless(): Promise<CarelessProvider> {
  const heads: Array<CarelessProvider["heads"][number]> = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    const connection = sockets.push(socket);
    let buffered = "";
    socket.on("error", () => {
      // The relay may let go of it at any time.
    });
    socket.on("data", (bytes) => {
      buffered += bytes.toString("latin1");
      for (let end = buffered.indexOf("\r\n\r\n"); end !== -1; end = buffered.indexOf("\r\n\r\n")) {
        heads.push({ connection, text: buffered.slice(0, end) });
        buffered = buffered.slice(end + 4);
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, heads, close };
}

/** One for each way, so that the connections of one are not those of another. */
const providers = new Map<string, CarelessProvider>();
let harness: Harness;
let application: TestApplication;
const VICTIMS_TOKEN = "the-token-of-the-victim-in-this-test-only";

beforeAll(async () => {
  const names = [...METHODS, "POST"].flatMap((method) => [false, true].map((isChunked) => nameOf(method, isChunked)));
  for (const name of names) providers.set(name, await startCareless());
  harness = await startHarness({
    // Otherwise another connection is opened for a call that comes at once.
    env: { RELAY_UPSTREAM_QUIET_MS: "0" },
    providers: [...providers].map(([name, { host }]) => ({ name, apiOrigins: [`http://${host}`] })),
  });
  application = await harness.createApplication();
  for (const providerName of names) {
    await harness.connect(application, "attacker", { providerName });
    await harness.connect(application, "victim", { providerName, accessToken: VICTIMS_TOKEN });
  }
});

afterAll(async () => {
  await harness.close();
  for (const provider of providers.values()) provider.close();
});

function nameOf(method: string, isChunked: boolean): string {
  return `${method.toLowerCase()}-${isChunked ? "in-chunks" : "with-a-length"}`;
}

async function pass(providerName: string, userId: string, method: string, fields: object, body: string): Promise<void> {
  const { hostname, port } = new URL(harness.url);
  const path = `/via/${providerName}/${providers.get(providerName)?.host}/of-${userId}`;
  const headers = { "x-relay-public-key": application.publicKey, "x-relay-user-id": userId, ...fields };
  const sent = request({ hostname, port, path, method, headers, agent: false });
  sent.end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  expect((await readAnswer(response)).text).toBe("{}");
}

/** What the provider takes from the victim's request, sent behind one with a body. */
async function victimBehind(method: string, isChunked: boolean): Promise<{ isShared: boolean; line: string }> {
  const name = nameOf(method, isChunked);
  const framing = isChunked ? { "transfer-encoding": "chunked" } : { "content-length": HIDDEN.length };
  await pass(name, "attacker", method, framing, HIDDEN);
  await pass(name, "victim", "GET", {}, "");
  const { heads = [] } = providers.get(name) ?? {};
  const own = heads.find(({ text }) => text.includes(VICTIMS_TOKEN));
  return { isShared: own?.connection === heads[0]?.connection, line: own?.text.split("\r\n")[0] ?? "" };
}

describe("behind a body that a provider does not read", () => {
  it.each(METHODS)("of %s, no request of another user comes on the same connection", async (method) => {
    for (const isChunked of [false, true]) {
      expect(await victimBehind(method, isChunked)).toEqual({ isShared: false, line: "GET /of-victim HTTP/1.1" });
    }
  });

  it("of POST, which every server reads, one does: the connection is kept", async () => {
    expect(await victimBehind("POST", false)).toEqual({ isShared: true, line: "GET /hidden HTTP/1.1" });
  });
});

import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";
import { createStreamCallers, rawTarget } from "../support/stream-callers.js";

/** `café` in latin1 and in UTF-8, each character a byte. */
const LATIN1 = "caf\xe9";
const UTF8 = "caf\xc3\xa9";

let provider: RawProvider;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  provider = await startRawProvider((socket) => {
    const head = answer("fine")
      .toString("latin1")
      .replace("\r\n\r\n", `\r\nX-Total-Latin1: ${LATIN1}\r\nX-Total-Utf8: ${UTF8}\r\n\r\n`);
    socket.write(head, "latin1");
  });
  harness = await startHarness({ providers: [{ name: "raw", apiOrigins: [provider.origin] }] });
  application = await harness.createApplication();
  await harness.connect(application, "u", { providerName: "raw" });
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

const call = () => ({
  providerName: "raw",
  userId: "u",
  publicKey: application.publicKey,
  call: { url: `${provider.origin}/`, method: "GET" },
});

describe("bytes beyond ASCII in a provider's fields", () => {
  it("arrive as they are on the raw route over HTTP/1.1", async () => {
    const { hostname, port } = new URL(harness.url);
    const socket = connect(Number(port), hostname);
    await once(socket, "connect");
    const body = JSON.stringify(call().call);
    socket.write(
      `POST ${rawTarget(call())} HTTP/1.1\r\nHost: relay\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    const received = Buffer.concat(chunks).toString("latin1");
    expect(received).toContain(`\r\nx-total-latin1: ${LATIN1}\r\n`);
    expect(received).toContain(`\r\nx-total-utf8: ${UTF8}\r\n`);
  });

  it("are text in the row of a call: UTF-8 where they are that, else latin1", async () => {
    for (const [protocol, caller] of createCallers(harness.url)) {
      const row = await caller(call());
      expect({ protocol, headers: row["headers"] }).toMatchObject({
        protocol,
        headers: { "X-Total-Latin1": "café", "X-Total-Utf8": "café" },
      });
    }
  });

  it("are text in the head of a typed stream, too", async () => {
    for (const [protocol, caller] of createStreamCallers(harness.url)) {
      if (protocol.startsWith("raw")) continue;
      const { head } = await caller(call());
      expect(head?.headers).toMatchObject({ "X-Total-Latin1": "café", "X-Total-Utf8": "café" });
    }
  });
});

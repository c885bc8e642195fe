import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createChunks } from "../../src/lib/chunks.js";
import { sendRaw } from "../http/support.js";
import { ADMIN_TOKENS, type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type RawProvider, startRawProvider } from "../support/raw-provider.js";

/**
 * A body in chunks of one byte once took a hundred times its size in memory, and over the typed protocols time with the
 * square of its size: 600 kB held the event loop for half a minute.
 */
const COUNT = 100_000;

let harness: Harness;
let provider: RawProvider;
let application: TestApplication;

beforeAll(async () => {
  provider = await startRawProvider((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n");
    socket.write(`${"1\r\na\r\n".repeat(COUNT)}0\r\n\r\n`);
  });
  harness = await startHarness({ providers: [{ name: "tiny", apiOrigins: [provider.origin] }] });
  application = await harness.createApplication();
  await harness.connect(application, "u", { providerName: "tiny" });
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

const restPath = () => `/oauth/method/tiny/call?user_id=u&public_key=${application.publicKey}`;
const call = () => JSON.stringify({ url: `${provider.origin}/`, method: "GET" });

/** Sends the body in chunks of one byte; resolves with the whole answer. */
function send(path: string, contentType: string, body: Buffer, url = harness.url): Promise<string> {
  // To callers it would be a private key.
  const token = url === harness.url ? "" : `Authorization: Bearer ${ADMIN_TOKENS.readOnly}\r\n`;
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\n${token}Transfer-Encoding: chunked\r\nConnection: close\r\n`;
  const chunks = [...body].map((byte) => Buffer.from([0x31, 0x0d, 0x0a, byte, 0x0d, 0x0a]));
  const bytes = [Buffer.from(`${head}Content-Type: ${contentType}\r\n\r\n`), ...chunks, Buffer.from("0\r\n\r\n")];
  return sendRaw(Number(new URL(url).port), Buffer.concat(bytes));
}

describe("a body in chunks of one byte", () => {
  it("is a call on the JSON route, and an answer of the provider", async () => {
    const answer = await send(restPath(), "text/plain", Buffer.from(call().padEnd(COUNT)));
    expect(answer).toContain(`"data":"${"a".repeat(COUNT)}"`);
  });

  it("is a call over Connect", async () => {
    const message = `{"providerName":"tiny","userId":"u","publicKey":"${application.publicKey}","call":${call()}}`;
    const body = Buffer.from(message.padEnd(COUNT));
    expect(await send("/relay.v1.RelayService/Call", "application/json", body)).toContain("a".repeat(1000));
  });

  it("is refused as a message over gRPC-Web when it is none", async () => {
    const body = Buffer.alloc(COUNT + 5);
    body.writeUInt32BE(COUNT, 1);
    expect(await send("/relay.v1.RelayService/Call", "application/grpc-web+proto", body)).toContain("grpc-status: ");
  });

  it("of health or reflection is refused once it is longer than names are", async () => {
    const body = Buffer.alloc(COUNT + 5);
    body.writeUInt32BE(COUNT, 1);
    expect(await send("/grpc.health.v1.Health/Check", "application/grpc-web+proto", body)).toContain("grpc-status: 8");
  });

  it("of an operator who watches calls is refused once it is longer than its fields are", async () => {
    const body = Buffer.alloc(COUNT + 5);
    body.writeUInt32BE(COUNT, 1);
    const path = "/relay.admin.v1.CallRecordService/WatchCallRecords";
    expect(await send(path, "application/connect+proto", body, harness.adminUrl)).toContain("resource_exhausted");
  });
});

describe("createChunks()", () => {
  it.each([0, 1, 2, 1023, 1024, 1025, 5000])("puts %d chunks together in order", (count) => {
    const chunks = createChunks();
    const expected = Buffer.from(Array.from({ length: count }, (_, at) => at % 251));
    for (const byte of expected) chunks.push(Buffer.from([byte]));
    expect(chunks.length).toBe(count);
    expect(chunks.concat()).toEqual(expected);
  });

  it("gives a single chunk back without a copy", () => {
    const chunk = Buffer.from("one");
    const chunks = createChunks();
    chunks.push(chunk);
    expect(chunks.concat().buffer).toBe(chunk.buffer);
  });

  it("keeps no more than 1,024 chunks as they came", () => {
    const chunks = createChunks();
    const packet = Buffer.alloc(2048, "x");
    for (let at = 0; at < 2048; at++) chunks.push(packet.subarray(at, at + 1));
    packet.fill("y");
    expect(chunks.concat().toString()).toBe("x".repeat(2048));
  });
});

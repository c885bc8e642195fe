import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { buffer } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ADMIN_TOKENS, type Harness, startHarness } from "../support/harness.js";

/**
 * A message that could not be decoded was once quoted to its sender by every kind of answer but that of unary Connect
 * calls: by the end of a stream, and by the trailers of gRPC and gRPC-Web with JSON (threats J14).
 */
const SECRET = "CANARY_in_the_wrong_place";

let harness: Harness;
let sessions: ReadonlyMap<string, ClientHttp2Session>;

beforeAll(async () => {
  harness = await startHarness();
  sessions = new Map([
    ["public", connect(harness.url)],
    ["admin", connect(harness.adminUrl)],
  ]);
});

afterAll(async () => {
  for (const session of sessions.values()) session.destroy();
  await harness.close();
});

/** Everything of an answer that a client sees, with all of it decompressed. */
async function send(
  port: string,
  path: string,
  contentType: string,
  body: Buffer,
  more: Readonly<Record<string, string>>,
): Promise<string> {
  const authorization = `Bearer ${ADMIN_TOKENS.operator}`;
  const fields = { "content-type": contentType, ...more, ...(port === "admin" && { authorization }) };
  const stream = (sessions.get(port) as ClientHttp2Session).request({ ":method": "POST", ":path": path, ...fields });
  const seen: IncomingHttpHeaders[] = [];
  for (const event of ["response", "trailers"] as const) stream.on(event, (received) => void seen.push(received));
  stream.end(body);
  const bytes = await buffer(stream);
  const encoding = seen[0]?.["content-encoding"];
  const text = encoding === undefined ? plainFrom(bytes) : decompress(bytes).toString("latin1");
  return decodeURIComponent(`${JSON.stringify(seen)}\n${text.replaceAll(/%(?![0-9A-F]{2})/g, "%25")}`);
}

/** Bytes whose envelopes, if they are any, are decompressed. */
function plainFrom(bytes: Buffer): string {
  if (bytes[0] === 0x7b || bytes.length < 5) return bytes.toString("latin1");
  const length = bytes.readUInt32BE(1);
  const data = bytes.subarray(5, 5 + length);
  const plain = ((bytes[0] ?? 0) & 1) === 1 ? decompress(data) : data;
  return plain.toString("latin1") + plainFrom(bytes.subarray(5 + length));
}

function decompress(bytes: Buffer): Buffer {
  return bytes[0] === 0x1f ? gunzipSync(bytes) : brotliDecompressSync(bytes);
}

function envelopeOf(data: string): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(Buffer.byteLength(data), 1);
  return Buffer.concat([prefix, Buffer.from(data)]);
}

const METHODS = [
  ["public", "/relay.v1.RelayService/Call", "unary"],
  ["public", "/relay.v1.RelayService/CallStream", "stream"],
  ["public", "/relay.v1.RelayService/ListConnections", "unary"],
  ["public", "/relay.v1.RelayService/DeleteConnection", "unary"],
  ["public", "/relay.v1.RelayService/CreateConnectLink", "unary"],
  ["public", "/grpc.health.v1.Health/Check", "unary"],
  ["public", "/grpc.health.v1.Health/Watch", "stream"],
  ["public", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "stream"],
  ["admin", "/relay.admin.v1.ApplicationService/ListApplications", "unary"],
  ["admin", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "stream"],
] as const;

const TYPES = ["Connect", "application/grpc+json", "application/grpc-web+json"] as const;
const COMPRESSED = {
  "accept-encoding": "gzip, br",
  "connect-accept-encoding": "gzip",
  "grpc-accept-encoding": "br",
};

describe.each(METHODS)("a message on the %s port that %s cannot decode", (port, path, kind) => {
  it.each(TYPES)("is not quoted over %s", async (type) => {
    const isUnaryConnect = type === "Connect" && kind === "unary";
    const connectType = isUnaryConnect ? "application/json" : "application/connect+json";
    const bodyOf = (json: string) => (isUnaryConnect ? Buffer.from(json) : envelopeOf(json));
    const contentType = type === "Connect" ? connectType : type;
    for (const [json, more] of [
      [`{"${SECRET}":1}`, {}],
      [`{"${SECRET}`, {}],
      [`{"${SECRET.repeat(60)}":1}`, COMPRESSED],
    ] as const) {
      const answer = await send(port, path, contentType, bodyOf(json), more);
      expect(answer).not.toContain("CANARY");
      expect(answer).toMatch(/"?code"?:"invalid_argument"|grpc-status"?: ?"?3/);
      // What is so long is compressed, and then nothing of it is told.
      if (json.length < 1000) expect(answer).toContain("from JSON: it ");
    }
    expect(harness.logLines.join("")).not.toContain(SECRET);
  });
});

describe("a stream over Connect", () => {
  it("says that binary which cannot be decoded is the caller's fault, as a unary call does", async () => {
    const body = envelopeOf("\u00ff");
    const answer = await send("public", "/relay.v1.RelayService/CallStream", "application/connect+proto", body, {});
    expect(answer).toContain('"code":"invalid_argument","message":"parse binary: ');
  });

  it("says that its end is missing", async () => {
    const body = envelopeOf("{}").subarray(0, 6);
    const answer = await send("public", "/relay.v1.RelayService/CallStream", "application/connect+json", body, {});
    expect(answer).toContain("protocol error: incomplete envelope");
  });
});

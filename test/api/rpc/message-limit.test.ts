import { constants } from "node:http2";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { createGzip, gzipSync } from "node:zlib";
import { create, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Code, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CallRequestSchema, CreateConnectLinkRequestSchema, RelayService } from "../../../gen/relay/v1/relay_pb.js";
import { connectHttp2, connectRaw, request } from "../../http/support.js";
import { type EdgeBed, MAX_REQUEST_BYTES, PATH, startEdgeBed } from "./edge-bed.js";

const MIB = 1024 * 1024;

let bed: EdgeBed;

beforeAll(async () => {
  bed = await startEdgeBed();
});

afterAll(() => bed.close());

const good = () => JSON.stringify(bed.call("/me"));
const port = () => Number(new URL(bed.harness.url).port);

describe("a message over the limit", () => {
  it("may be as large as the limit", async () => {
    expect((await bed.send(good().padEnd(MAX_REQUEST_BYTES))).status).toBe(200);
  });

  it.each([1, 200_000])("is refused when it is %d bytes larger, and the connection goes on", async (more) => {
    const answer = await bed.send(good().padEnd(MAX_REQUEST_BYTES + more));
    expect(answer.status).toBe(429);
    expect(JSON.parse(answer.text)).toMatchObject({ code: "resource_exhausted" });
    await bed.expectGoodCall();
  });

  it("is refused when its length is not known before, and the connection goes on", async () => {
    const chunks = [good(), " ".repeat(MAX_REQUEST_BYTES), " ".repeat(MAX_REQUEST_BYTES)];
    const answer = await bed.send(Readable.from(chunks));
    expect(answer.status).toBe(429);
    await bed.expectGoodCall();
  });

  it.each([
    ["Connect", createConnectTransport],
    ["gRPC", createGrpcTransport],
    ["gRPC-Web", createGrpcWebTransport],
  ])("is refused over HTTP/2 by %s, and the connection goes on", async (_protocol, createTransport) => {
    const client = createClient(RelayService, createTransport({ baseUrl: bed.harness.url, httpVersion: "2" }));
    const { publicKey } = bed.application;
    const perform = (path: string, body: Uint8Array) => {
      const call = { url: bed.harness.sandbox.origin + path, method: "POST", body };
      return client.call({ providerName: "sandbox", userId: "ada", publicKey, call });
    };
    // A client that is left with what it wants to send runs into the memory limit of its own session.
    for (let times = 0; times < 6; times++) {
      const refused = perform("/echo", new Uint8Array(3 * MAX_REQUEST_BYTES));
      await expect(refused).rejects.toMatchObject({ code: Code.ResourceExhausted });
    }
    expect(await perform("/echo", new Uint8Array(10))).toMatchObject({ rows: [{ pincStatus: "success" }] });
  });

  it("is refused when it is endless, and the connection ends", async () => {
    const { socket, closed } = await connectRaw(port());
    socket.write(
      `POST ${PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    const chunk = Buffer.from(`fffff\r\n${" ".repeat(0xfffff)}\r\n`);
    const pump = () => {
      while (socket.writable && socket.write(chunk));
    };
    socket.on("drain", pump);
    pump();
    // The end may overtake the answer: whoever never stops sending may not see it.
    expect(await closed).toMatch(/^HTTP\/1\.1 429 |^$/);
    await bed.expectGoodCall();
  });

  it("leaves no fault in the log when the client gives up half-way", async () => {
    const { socket } = await connectRaw(port());
    const head = `POST ${PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\n\r\n`;
    await new Promise((resolve) => socket.write(head.padEnd(1_500_000), resolve));
    socket.destroy();
    const session = await connectHttp2(port());
    const stream = session.request({ ":method": "POST", ":path": PATH, "content-type": "application/json" });
    await new Promise((resolve) => stream.write(" ".repeat(1_500_000), resolve));
    stream.close(constants.NGHTTP2_CANCEL);
    await new Promise((resolve) => stream.on("close", resolve));
    // The second on the same connection: the relay has seen the end of the first.
    await request(session, { ":path": "/healthz" });
    await bed.expectGoodCall();
    expect(bed.harness.logLines.join("")).not.toContain('"fault"');
  });

  it("is refused when 300 KB are 300 MB once decompressed, for little memory", async () => {
    const bomb = await buffer(Readable.from(blanks(300)).pipe(createGzip()));
    expect(bomb.length).toBeLessThan(400_000);
    const before = process.resourceUsage().maxRSS;
    for (const contentType of ["application/json", "application/proto"]) {
      const answer = await bed.send(bomb, { "content-type": contentType, "content-encoding": "gzip" });
      expect(answer.status).toBe(429);
      expect(JSON.parse(answer.text)).toMatchObject({ code: "resource_exhausted" });
    }
    const headers = { "content-type": "application/grpc-web+proto", "grpc-encoding": "gzip" };
    const answer = await bed.send(Buffer.concat([envelopeHead(1, bomb.length), bomb]), headers);
    expect(answer.text).toContain("grpc-status: 8");
    expect(process.resourceUsage().maxRSS - before).toBeLessThan(200 * 1024);
    await bed.expectGoodCall();
  });

  it("reserves no memory that is only announced, by Content-Length or by an envelope", async () => {
    const before = process.memoryUsage().arrayBuffers;
    const announce = (contentType: string, length: number, bytes: string) =>
      `POST ${PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: ${contentType}\r\nContent-Length: ${length}\r\n\r\n${bytes}`;
    const json = [announce("application/json", 4294967295, ""), "resource_exhausted"] as const;
    const grpcWeb = [announce("application/grpc-web+proto", 5, "\0\xff\xff\xff\xff"), "grpc-status: 8"] as const;
    const requests = [json, json, json, grpcWeb, grpcWeb, grpcWeb];
    const answers = requests.map(async ([request, told]) => {
      const { socket, received } = await connectRaw(port());
      socket.write(request, "latin1");
      return received(told);
    });
    await Promise.all(answers);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100 * MIB);
  });

  it("says what it can decompress", async () => {
    const answer = await bed.send(good(), { "content-encoding": "zstd" });
    expect(answer.status).toBe(501);
    expect(JSON.parse(answer.text)).toMatchObject({ code: "unimplemented" });
    expect(answer.headers["accept-encoding"]).toBe("gzip,br");
    expect((await bed.send("no gzip", { "content-encoding": "gzip" })).status).toBe(400);
    await bed.expectGoodCall();
  });
});

function* blanks(mib: number): Generator<Buffer> {
  const chunk = Buffer.alloc(MIB, " ");
  for (let sent = 0; sent < mib; sent++) yield chunk;
}

function envelopeHead(flags: number, length: number): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(length, 1);
  return head;
}

describe("a message of very many parts", () => {
  /** Much less than the limit in bytes, and a hundred thousand objects. */
  const payload = { a: Array.from({ length: 105_000 }, () => []) };
  const callWith = (description: object) => bed.call("/echo", { method: "POST", ...description });
  const proto = once(() => binaryOf(callWith({ payload })));
  const json = once(() => Buffer.from(JSON.stringify(callWith({ payload }))));
  const page = { origin: "https://app.example.com" };
  const CALL_STREAM = "/relay.v1.RelayService/CallStream";

  it.each<[string, string, () => Buffer, Record<string, string>?, string?]>([
    ["Connect in protobuf", "application/proto", proto],
    ["Connect in JSON", "application/json", json],
    ["Connect in protobuf, from a page", "application/proto", proto, page],
    ["Connect in JSON, from a page", "application/json", json, page],
    ["Connect in protobuf, compressed", "application/proto", () => gzipSync(proto()), GZIP],
    ["Connect in JSON, compressed", "application/json", () => gzipSync(json()), GZIP],
    ["gRPC-Web in protobuf", "application/grpc-web+proto", () => framed(proto())],
    ["gRPC-Web in JSON", "application/grpc-web+json", () => framed(json())],
    ["gRPC-Web, compressed", "application/grpc-web", () => framed(gzipSync(proto()), 1), { "grpc-encoding": "gzip" }],
    [
      "gRPC-Web, before more than a message may have",
      "application/grpc-web",
      () => Buffer.concat([framed(proto()), Buffer.alloc(MAX_REQUEST_BYTES)]),
    ],
    ["a payload given again and again", "application/proto", () => givenAgain(300)],
    ["the same, from a page", "application/proto", () => givenAgain(300), page],
    ["the same, compressed", "application/proto", () => gzipSync(givenAgain(300)), GZIP],
    ["the same in gRPC-Web", "application/grpc-web", () => framed(givenAgain(300))],
    ["the same in calls given again and again", "application/proto", () => inCallsGivenAgain(300)],
    ["what is JSON, too", "application/proto", () => gzipSync(alsoJson(200_001)), GZIP],
    [
      "another method, compressed",
      "application/proto",
      () => gzipSync(Buffer.concat([NO_CALL, unknownFields(200_001)])),
      GZIP,
      "/relay.v1.RelayService/ListConnections",
    ],
    ["a stream in protobuf", "application/connect+proto", () => framed(proto()), {}, CALL_STREAM],
    ["a stream in JSON", "application/connect+json", () => framed(json()), {}, CALL_STREAM],
  ])("is refused before it is decoded: %s", async (_form, type, body, headers = {}, path = PATH) => {
    const { text } = await bed.send(body(), { "content-type": type, ...headers }, { path });
    expect(decodeURIComponent(text.replaceAll("\ufffd", ""))).toContain("the message has more than 200000 parts;");
    if (type.startsWith("application/grpc-web")) expect(text).toContain(`grpc-status: ${Code.InvalidArgument}`);
    else expect(text).toContain('"invalid_argument"');
  });

  it("is not looked at behind another message", async () => {
    for (const second of [proto(), Buffer.from([7]), Buffer.alloc(0)]) {
      const body = Buffer.concat([framed(binaryOf(callWith({}))), framed(second)]);
      const { text } = await bed.send(body, { "content-type": "application/grpc-web" });
      expect(text).toContain(`grpc-status: ${Code.Unimplemented}`);
    }
    const json = framed(Buffer.from(JSON.stringify(callWith({}))));
    const twice = await bed.send(Buffer.concat([json, json]), { "content-type": "application/connect+json" }, STREAM);
    expect(twice.text).toContain('"unimplemented"');
    const broken = Buffer.concat([json, json.subarray(0, -1)]);
    const answer = await bed.send(broken, { "content-type": "application/connect+json" }, STREAM);
    expect(answer.text).toContain('"invalid_argument"');
  });

  it("may have a payload in pieces, and a list of texts", async () => {
    const { text } = await bed.send(givenAgain(3), { "content-type": "application/proto" });
    expect(text).toContain("success");
    const link = toBinary(
      CreateConnectLinkRequestSchema,
      create(CreateConnectLinkRequestSchema, { providers: Array.from({ length: 100_000 }, () => "sandbox") }),
    );
    const path = "/relay.v1.RelayService/CreateConnectLink";
    expect((await bed.send(link, { "content-type": "application/proto" }, { path })).text).not.toContain("internal");
  });

  it("is refused over gRPC, where a large body is taken", async () => {
    const client = createClient(RelayService, createGrpcTransport({ baseUrl: bed.harness.url }));
    const requestFrom = (description: object) =>
      fromJson(CallRequestSchema, callWith(description) as unknown as JsonObject);
    const refusal = { code: Code.InvalidArgument, rawMessage: expect.stringContaining("more than 200000 parts") };
    await expect(client.call(requestFrom({ payload }))).rejects.toMatchObject(refusal);
    const { rows } = await client.call(requestFrom({ body: "A".repeat(900_000) }));
    expect(rows[0]?.errorType, rows[0]?.inernalError).toBe("");
  });
});

/** A call with a payload of 300 members, and so often the beginning of an empty one behind it. */
function givenAgain(times: number): Buffer {
  const payload = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`m${index}`, 1]));
  const again = new BinaryWriter();
  for (let time = 0; time < times; time++) again.tag(3, WireType.LengthDelimited).fork().join();
  const more = new BinaryWriter().tag(4, WireType.LengthDelimited).bytes(again.finish()).finish();
  return Buffer.concat([binaryOf(bed.call("/echo", { method: "POST", payload })), more]);
}

function inCallsGivenAgain(times: number): Buffer {
  const call = new BinaryWriter()
    .tag(4, WireType.LengthDelimited)
    .bytes(Buffer.from([0x1a, 0]))
    .finish();
  return Buffer.concat([givenAgain(0), ...Array.from({ length: times }, () => call)]);
}

/** Each a number of the field 8: `@A`. */
function unknownFields(count: number): Buffer {
  return Buffer.alloc(2 * count, "@A");
}

/** A name of 32 characters, of which the last opens a string, of fields of which the last has the number `"`. */
function alsoJson(count: number): Buffer {
  return Buffer.concat([Buffer.from(`\n ${" ".repeat(31)}"`), unknownFields(count), Buffer.from('@"')]);
}

/** A text where a call has its description, which it is not. */
const NO_CALL = new BinaryWriter().tag(4, WireType.LengthDelimited).string("\u0007").finish();
const STREAM = { path: "/relay.v1.RelayService/CallStream" };

function binaryOf(call: object): Buffer {
  return Buffer.from(toBinary(CallRequestSchema, fromJson(CallRequestSchema, call as JsonObject)));
}

const GZIP = { "content-encoding": "gzip" };

function framed(message: Buffer, flags = 0): Buffer {
  const prefix = Buffer.from([flags, 0, 0, 0, 0]);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Of what takes long to make. */
function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

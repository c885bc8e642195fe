import { gunzipSync } from "node:zlib";
import { fromBinary, fromJson, fromJsonString, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CallRequestSchema, CallResponseSchema, type ResultRow } from "../../../gen/relay/v1/relay_pb.js";
import { connectRaw } from "../../http/support.js";
import { http1Request, http2Request, PATH, post, type Seen, startTwoRelays, type TwoRelays } from "./two-relays.js";

const MAX_BUFFERED_BYTES = 1024 * 1024;

let two: TwoRelays;

beforeAll(async () => {
  two = await startTwoRelays({ RELAY_MAX_BUFFERED_BYTES: String(MAX_BUFFERED_BYTES) });
});

afterAll(() => two.close());

function call(path: string) {
  const url = two.harness.sandbox.origin + path;
  const { publicKey } = two.application;
  return { providerName: "sandbox", userId: "ada", publicKey, call: { url, method: "GET" } };
}

const binary = (path: string) => Buffer.from(toBinary(CallRequestSchema, fromJson(CallRequestSchema, call(path))));

function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** The forms that the fast path takes: how to send a call, and how to find the message in what is seen. */
const FORMS = [
  [
    "gRPC",
    (path: string, headers: object) =>
      http2Request({ "content-type": "application/grpc", ...headers }, framed(binary(path))),
    ({ body }: Seen) => Buffer.from(body, "latin1").subarray(5),
  ],
  [
    "Connect in protobuf",
    (path: string, headers: object) => http2Request({ "content-type": "application/proto", ...headers }, binary(path)),
    ({ body }: Seen) => Buffer.from(body, "latin1"),
  ],
  [
    "Connect in JSON",
    (path: string, headers: object) =>
      http2Request({ "content-type": "application/json", ...headers }, Buffer.from(JSON.stringify(call(path)))),
    ({ body }: Seen) => Buffer.from(body, "latin1"),
  ],
] as const;

function rowFrom(form: string, message: Buffer): ResultRow {
  const response = form.endsWith("JSON")
    ? fromJsonString(CallResponseSchema, message.toString())
    : fromBinary(CallResponseSchema, message);
  return response.rows[0] as ResultRow;
}

describe.each(FORMS)("a call in %s", (form, send, messageOf) => {
  it("is answered as it is, also where connect-node would compress", async () => {
    const accepting = { "accept-encoding": "gzip", "grpc-accept-encoding": "gzip" };
    const connect = await send("/json?size=20000", accepting)(two.without);
    const fast = await send("/json?size=20000", accepting)(two.withFastPath);
    expect(connect.head["content-encoding"] ?? connect.head["grpc-encoding"]).toBe("gzip");
    expect(fast.head).not.toHaveProperty("content-encoding");
    expect(fast.head).not.toHaveProperty("grpc-encoding");
    const [row, compressed] = [messageOf(fast), gunzipSync(messageOf(connect))].map((bytes) => rowFrom(form, bytes));
    expect(row?.data).toEqual(compressed?.data);
    expect(row?.data).toBeDefined();
  });

  it("ends with the timeout of a caller that stays all the same", async () => {
    const timeout = { "grpc-timeout": "500m", "connect-timeout-ms": "500" };
    const row = rowFrom(form, messageOf(await send("/slow?ms=60000", timeout)(two.withFastPath)));
    expect(row).toMatchObject({ pincStatus: "error", statusCode: 504, errorType: "PROVIDER_TIMEOUT" });
    expect(row.inernalError).toContain("deadline");
  });
});

describe("the fast path", () => {
  it("answers one call after the other on a connection of HTTP/1.1", async () => {
    const body = JSON.stringify(call("/me"));
    const head = `POST ${PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    const last = post("application/json", body);
    const { body: answers } = await http1Request(
      `${head}\r\n\r\n${body}${head}\r\n\r\n${body}`,
      last,
    )(two.withFastPath);
    expect(answers.match(/"pincStatus":"success"/g)).toHaveLength(3);
  });

  it("takes JSON whose charset is named", async () => {
    const fields = { "content-type": "application/json; charset=utf-8", "accept-encoding": "gzip" };
    const { head, body } = await FORMS[2][1]("/json?size=20000", fields)(two.withFastPath);
    expect(head).not.toHaveProperty("content-encoding");
    expect(rowFrom("JSON", Buffer.from(body, "latin1")).pincStatus).toBe("success");
  });

  it("refuses a large JSON of more members than any call may have, and holds nothing of it then", async () => {
    const body = `{"call":{"url":"https://x/","body":"QUFB",${'"":0,'.repeat(60_000)}"":0}}`;
    for (let at = 0; at < 5; at++) {
      const { body: text } = await http1Request(post("application/json", body))(two.withFastPath);
      const { rows } = fromJsonString(CallResponseSchema, text);
      expect(rows[0]).toMatchObject({ pincStatus: "error", errorType: "CALL_FORMAT_ERROR", statusCode: 400 });
      expect(rows[0]?.inernalError).toBe("The message has more than 30000 keys.");
    }
  });

  it("leaves a message that the memory has no room for to connect-node, which refuses it", async () => {
    const large = Buffer.concat([binary("/me"), Buffer.from([0x7a, 0x80, 0x80, 0x80, 0x01]), Buffer.alloc(2 ** 21)]);
    for (const headers of [{ "content-type": "application/proto" }, { "content-type": "application/grpc" }]) {
      const body = headers["content-type"].endsWith("grpc") ? framed(large) : large;
      const seen = await http2Request(headers, body)(two.withFastPath);
      expect(seen).toEqual(await http2Request(headers, body)(two.without));
      expect(seen.body + JSON.stringify(seen.trailers)).toMatch(/resource_exhausted|"grpc-status":"8"/);
    }
  });

  it("cuts off a request that has not come to its end when others need the room", async () => {
    const port = Number(new URL(two.withFastPath).port);
    const unfinished = (length: number) => {
      const head = `POST ${PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
      return `${head}{`.padEnd(length, " ");
    };
    const { socket, closed } = await connectRaw(port);
    socket.write(unfinished(MAX_BUFFERED_BYTES / 2));
    // Which of the two comes first nobody knows; one of them has to go.
    const other = await connectRaw(port);
    other.socket.write(unfinished(MAX_BUFFERED_BYTES * 0.75));
    expect(await Promise.race([closed, other.closed])).toBe("");
  });

  it("has nothing to say when its caller leaves in the middle of a message", async () => {
    const bytes = framed(binary("/me"));
    for (const headers of [{ "content-type": "application/grpc" }, { "content-type": "application/proto" }]) {
      const leaving = new AbortController();
      const ended = http2Request(
        headers,
        [bytes.subarray(0, 20), async () => leaving.abort()],
        leaving.signal,
      )(two.withFastPath);
      expect(await ended).toMatchObject({ head: {}, body: "", end: "code 8" });
    }
    expect((await http2Request({ "content-type": "application/grpc" }, bytes)(two.withFastPath)).trailers).toEqual({
      "grpc-status": "0",
    });
    expect(two.harness.logLines.join("")).not.toContain('"fault"');
  });
});

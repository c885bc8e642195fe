import { gzipSync } from "node:zlib";
import {
  CONTINUATION,
  END_HEADERS,
  END_STREAM,
  frame,
  HEADERS,
  HELLO,
  PING,
  RST_STREAM,
  SETTINGS,
  uint32,
  WINDOW_UPDATE,
} from "../http/frames.js";
import { head, post } from "./raw-http1.js";
import { blockFrom, callFrames, requestBlock } from "./raw-http2.js";
import type { RelayPlace } from "./relay-process.js";

/** A row of threats 2E: what is sent, and what must come back (latin1; empty when nothing need come). */
export interface RawRow {
  readonly name: string;
  readonly bytes: Buffer;
  readonly expect: RegExp;
  /** For an answer that comes in many pieces and ends with the connection: how long it may be quiet in between. */
  readonly quietMs?: number;
}

const BAD = /^HTTP\/1\.1 400 /;
const TOO_LARGE = /^HTTP\/1\.1 431 /;
/** SETTINGS come first. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: frames are binary
const ANY_HTTP2 = /^\0\0.\x04/s;

/** The table of threats 2E as far as it is bytes; what needs time is in the listener's own tests. */
export function createRows(place: RelayPlace): RawRow[] {
  return [
    ...hostRows(),
    ...framingRows(place),
    ...limitRows(place),
    ...oddRows(place),
    ...queryRows(place),
    ...http2Rows(place),
  ];
}

function row(name: string, text: string, expect: RegExp): RawRow {
  return { name, bytes: Buffer.from(text, "latin1"), expect };
}

function hostRows(): RawRow[] {
  const hosts = ["[", "", "a b", "%zz", "x:99999", "a@b", "[::1", "[v1.x]", "x:y", "a\tb", "\u00e9"];
  return [
    ...hosts.map((host) => row(`I01 Host: ${host}`, `GET /healthz HTTP/1.1\r\nHost: ${host}\r\n\r\n`, BAD)),
    ...hosts.map((host) =>
      row(
        `I01 rpc with Host: ${host}`,
        `POST /relay.v1.RelayService/Call HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 2\r\n\r\n{}`,
        BAD,
      ),
    ),
    row("I01 HTTP/1.0 without Host", "POST /relay.v1.RelayService/Call HTTP/1.0\r\n\r\n", BAD),
    row("I01 HTTP/1.1 without Host", "GET /healthz HTTP/1.1\r\n\r\n", BAD),
    row("I03 two Hosts", "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", BAD),
    row("I05 HTTP/0.9", "GET /\r\n\r\n", BAD),
    row("I05 HTTP/2.0 without a preface", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", BAD),
  ];
}

function framingRows({ publicKey }: RelayPlace): RawRow[] {
  const target = `/oauth/method/sandbox/call?user_id=user&public_key=${publicKey}`;
  const request = (...fields: string[]) => `${head("POST", target, fields)}5\r\nhello\r\n0\r\n\r\n`;
  const lengths = ["2, 2", "+2", "-1", "18446744073709551616", "0x2", "2.0", "a"];
  return [
    row("I06 both", request("Content-Length: 5", "Transfer-Encoding: chunked"), BAD),
    ...["chunked, identity", "xchunked", "\x0bchunked", "identity", "gzip"].map((value) =>
      row(`I06 ${value}`, request(`Transfer-Encoding: ${value}`), BAD),
    ),
    row("I06 twice", request("Transfer-Encoding: chunked", "Transfer-Encoding: identity"), BAD),
    ...lengths.map((length) => row(`I07 ${length}`, request(`Content-Length: ${length}`), BAD)),
    row("I07 twice", request("Content-Length: 2", "Content-Length: 2"), BAD),
    row("I07 space before the colon", request("Content-Length : 2"), BAD),
    row("I07 folded", request("X-A: 1\r\n 2"), BAD),
    row("I07 bare LF", "GET /healthz HTTP/1.1\nHost: a\n\n", BAD),
    row("I07 bare CR", "GET /healthz HTTP/1.1\r\nHost: a\r\nX-A: 1\rX-B: 2\r\n\r\n", BAD),
    row("I07 NUL", "GET /healthz HTTP/1.1\r\nHost: a\r\nX-A: \0\r\n\r\n", BAD),
    row(
      "I08 extension",
      `${head("POST", "/relay.v1.RelayService/Call", ["Transfer-Encoding: chunked"])}5;${"a".repeat(20_000)}\r\n`,
      /^HTTP\/1\.1 4(?:00|13) /,
    ),
  ];
}

function limitRows({ publicKey }: RelayPlace): RawRow[] {
  const target = `/oauth/method/sandbox/call?user_id=user&public_key=${publicKey}`;
  const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024)).toString("latin1");
  const rpc = (coding: string) => ["Content-Type: application/json", coding];
  return [
    row("I09 field", head("GET", "/healthz", [`X-A: ${"a".repeat(20_000)}`]), TOO_LARGE),
    row("I09 target", head("GET", `/${"a".repeat(20_000)}`, []), TOO_LARGE),
    row(
      "I10 fields",
      head(
        "GET",
        "/healthz",
        Array.from({ length: 2_500 }, (_, at) => `X-${at}: 1`),
      ),
      TOO_LARGE,
    ),
    row(
      "I13 announced",
      head("POST", target, ["Content-Length: 4294967295"]),
      /^HTTP\/1\.1 (?:200 [\s\S]*REQUEST_TOO_LARGE|400 )/,
    ),
    row(
      "I13 announced to the rpc",
      head("POST", "/relay.v1.RelayService/Call", ["Content-Type: application/json", "Content-Length: 4294967295"]),
      /^(?:HTTP\/1\.1 [\s\S]*resource_exhausted|HTTP\/1\.1 4|$)/,
    ),
    row(
      "I14 bomb",
      post("/relay.v1.RelayService/Call", bomb, rpc("Content-Encoding: gzip")),
      /^HTTP\/1\.1 429 [\s\S]*resource_exhausted/,
    ),
    row(
      "I14 compressed to the JSON route",
      post(target, bomb, rpc("Content-Encoding: gzip")),
      /^HTTP\/1\.1 200 [\s\S]*CALL_FORMAT_ERROR/,
    ),
    {
      ...row(
        "I16 pipelined",
        head("GET", "/healthz", []).repeat(999) + head("GET", "/healthz", ["Connection: close"]),
        /^(?:HTTP\/1\.1 200 OK\r\n(?:.+\r\n)+\r\nok\n){1000}$/,
      ),
      quietMs: 5_000,
    },
  ];
}

function oddRows({ publicKey, origin }: RelayPlace): RawRow[] {
  const target = `/oauth/method/sandbox/call?user_id=user&public_key=${publicKey}`;
  const body = (bytes: string) => post(target, bytes, ["Content-Type: application/json"]);
  const good = JSON.stringify({ url: `${origin}/me`, method: "GET" });
  return [
    row(
      "I12 h2c",
      head("GET", "/healthz", ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA"]),
      /^HTTP\/1\.1 200 /,
    ),
    row("I12 PRI", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", BAD),
    row("I12 TLS", "\x16\x03\x01\0\xc8\x01\0\0\xc4\x03\x03".padEnd(200, "\x07"), /^HTTP\/1\.1 400 |^$/),
    row("I12 Expect", head("GET", "/healthz", ["Expect: foo"]), /^HTTP\/1\.1 417 /),
    row("I12 CONNECT", "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", /^HTTP\/1\.1 405 /),
    row("I18 __proto__", head("GET", "/healthz", ["__proto__: x", "constructor: y"]), /^HTTP\/1\.1 200 /),
    ...["abc", "-1", "9999999999999"].map((value) =>
      row(`I21 ${value}`, rpcCall(`Connect-Timeout-Ms: ${value}`), /^HTTP\/1\.1 400 [\s\S]*invalid_argument/),
    ),
    row("I21 0", rpcCall("Connect-Timeout-Ms: 0"), /^HTTP\/1\.1 504 [\s\S]*deadline_exceeded/),
    row("I23 invalid UTF-8", body(good.replace("GET", "G\xff")), /CALL_FORMAT_ERROR/),
    row("I23 UTF-16", body(Buffer.from(good, "utf16le").toString("latin1")), /CALL_FORMAT_ERROR/),
    row("I23 byte order mark", body(`\xef\xbb\xbf${good}`), /"pincStatus":"success"/),
  ];
}

function rpcCall(field: string): string {
  return post("/relay.v1.RelayService/Call", "{}", ["Content-Type: application/json", field]);
}

function queryRows({ publicKey, origin }: RelayPlace): RawRow[] {
  const good = JSON.stringify({ url: `${origin}/me`, method: "GET" });
  const call = (query: string) => post(`/oauth/method/sandbox/call?${query}`, good, []);
  const queries = [
    `public_key=${publicKey}&public_key=b&user_id=user`,
    `public_key=${publicKey}&publicKey=b&user_id=user`,
    `public_key=${publicKey}&user_id=user&user_id=user`,
    `public_key[]=${publicKey}&user_id=user`,
    `public_key[$ne]=&user_id=user`,
    "public_key=&user_id=user",
    "user_id=user",
    `public_key=${publicKey}`,
    `public_key=${"a".repeat(10_000)}&user_id=user`,
    `public_key=${publicKey}&user_id=%ff`,
    `public_key=${publicKey}&user_id=%`,
    `public_key=${publicKey}&user_id=%ed%a0%80`,
  ];
  return [
    ...queries.map((query) =>
      row(`I19 ${query.slice(0, 60)}`, call(query), /^HTTP\/1\.1 200 [\s\S]*CALL_FORMAT_ERROR/),
    ),
    row("I19 NUL", call(`public_key=${publicKey}&user_id=user%00`), /INVALID_OAUTHID/),
    row("I19 a plus is a space", call(`public_key=${publicKey}&user_id=us+er`), /INVALID_OAUTHID/),
    row("U42 bad percent", post("/oauth/method/%E0%A4%A/call?user_id=user&public_key=a", good, []), /INVALID_P/),
  ];
}

function http2Rows(place: RelayPlace): RawRow[] {
  const rows = (name: string, ...frames: Buffer[]): RawRow => ({
    name,
    bytes: Buffer.concat([HELLO, ...frames]),
    expect: ANY_HTTP2,
  });
  const opened = (id: number) => frame(HEADERS, END_HEADERS, id, requestBlock("POST", "/relay.v1.RelayService/Call"));
  const authority = (value: string) =>
    frame(
      HEADERS,
      END_HEADERS | END_STREAM,
      1,
      blockFrom([
        [":method", "POST"],
        [":scheme", "http"],
        [":path", "/relay.v1.RelayService/Call"],
        [":authority", value],
      ]),
    );
  return [
    ...["[", "", "a b", "x:99999"].map((value) => rows(`I02 ${value}`, authority(value))),
    rows(
      "I17 rapid reset",
      ...Array.from({ length: 10_000 }, (_, at) =>
        Buffer.concat([opened(2 * at + 1), frame(RST_STREAM, 0, 2 * at + 1, uint32(8))]),
      ),
    ),
    rows(
      "I17 rapid reset of calls",
      ...Array.from({ length: 300 }, (_, at) =>
        Buffer.concat([...callFrames(place, 2 * at + 1), frame(RST_STREAM, 0, 2 * at + 1, uint32(8))]),
      ),
    ),
    rows(
      "I17 CONTINUATION flood",
      frame(HEADERS, 0, 1, requestBlock("GET", "/")),
      ...Array.from({ length: 1_000 }, () => frame(CONTINUATION, 0, 1, blockFrom([["x-a", "1"]]))),
    ),
    rows("I17 SETTINGS flood", ...Array.from({ length: 10_000 }, () => frame(SETTINGS, 0, 0))),
    rows("I17 PING flood", ...Array.from({ length: 10_000 }, () => frame(PING, 0, 0, Buffer.alloc(8)))),
    rows(
      "I17 window of 0",
      frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(0)])),
      ...[1, 3, 5].flatMap((id) => callFrames(place, id)),
    ),
    rows(
      "I17 malformed block",
      frame(HEADERS, END_HEADERS, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f])),
    ),
    rows("I17 window overflow", frame(WINDOW_UPDATE, 0, 0, uint32(2 ** 31 - 1))),
    rows("I17 window update of 0", frame(WINDOW_UPDATE, 0, 0, uint32(0))),
    rows("too many streams", ...Array.from({ length: 500 }, (_, at) => opened(2 * at + 1))),
  ];
}

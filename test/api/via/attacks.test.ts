import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bearer, sendRaw, startViaBed, type ViaBed } from "./via-bed.js";

let bed: ViaBed;
/** Of each request that the provider took to its end. */
const bodies: string[] = [];

beforeAll(async () => {
  bed = await startViaBed();
  bed.answer = (incoming, response) => {
    let body = "";
    incoming.on("error", () => {});
    incoming.on("data", (chunk) => (body += chunk));
    incoming.on("end", () => {
      bodies.push(body);
      response.end("{}");
    });
  };
});

afterAll(() => bed.close());

const END = "\r\n\r\n";

/** Bytes on one connection, which the relay closes in the end. */
function attack(target: string, fields: readonly string[], rest: string, method = "POST"): Promise<string> {
  const lines = ["Host: relay", `Authorization: ${bearer(bed)["authorization"]}`, "Connection: close", ...fields];
  return sendRaw(bed, Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join("\r\n")}${END}${rest}`, "latin1"));
}

const HIDDEN = `GET /hidden HTTP/1.1\r\nHost: relay\r\n\r\n`;

describe("a request that hides another one", () => {
  it.each<[string, readonly string[], string]>([
    ["Content-Length and Transfer-Encoding", ["Content-Length: 4", "Transfer-Encoding: chunked"], `0${END}${HIDDEN}`],
    ["Transfer-Encoding and Content-Length", ["Transfer-Encoding: chunked", "Content-Length: 4"], `0${END}${HIDDEN}`],
    ["two lengths", ["Content-Length: 0", "Content-Length: 40"], HIDDEN],
    ["two equal lengths", ["Content-Length: 1", "Content-Length: 1"], "a"],
    ["a list of lengths", ["Content-Length: 0, 40"], HIDDEN],
    ["a signed length", ["Content-Length: +0"], HIDDEN],
    ["a coding behind chunked", ["Transfer-Encoding: chunked, identity"], `0${END}${HIDDEN}`],
    ["chunked twice", ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], `0${END}${HIDDEN}`],
    ["a coding that looks like chunked", ["Transfer-Encoding: \x0bchunked"], `0${END}${HIDDEN}`],
    ["a space before the colon", ["Transfer-Encoding : chunked"], `0${END}${HIDDEN}`],
    ["a folded coding", ["Transfer-Encoding:", " chunked"], `0${END}${HIDDEN}`],
    ["a folded field", ["X-A: b", "\tTransfer-Encoding: chunked"], `0${END}${HIDDEN}`],
    ["a bare line feed", ["X-A: b\nTransfer-Encoding: chunked"], `0${END}${HIDDEN}`],
    ["a size of a chunk that is no hexadecimal number", ["Transfer-Encoding: chunked"], `0x4\r\nabcd\r\n0${END}`],
    ["a chunk that is longer than its size", ["Transfer-Encoding: chunked"], `1\r\nabcd\r\n0${END}`],
    ["an extension of a chunk with a line feed", ["Transfer-Encoding: chunked"], `1;a\nb\r\na\r\n0${END}`],
    ["an extension of 20 KB", ["Transfer-Encoding: chunked"], `1;${"a".repeat(20_000)}\r\na\r\n0${END}`],
    ["a NUL in a field", ["X-A: a\0b"], ""],
  ])("by %s is refused, and no request of it is performed", async (_how, fields, rest) => {
    const before = { received: bed.received.length, bodies: bodies.length };
    const text = await attack(bed.via("/a"), fields, rest);
    expect(text).toMatch(/^HTTP\/1\.1 (?:400|501) /);
    expect(text.match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
    // What was found behind the head may have begun; it was not ended as a whole request.
    expect(bodies.length).toBe(before.bodies);
    expect(bed.received.slice(before.received).map(({ target }) => target)).not.toContain("/hidden");
  });

  it.each<[string, readonly string[], string, string]>([
    ["an extension of a chunk, which is dropped", ["Transfer-Encoding: chunked"], `1;a=b\r\nx\r\n0${END}`, "x"],
    [
      "trailers, which are dropped",
      ["Transfer-Encoding: chunked", "Trailer: Authorization"],
      `1\r\nx\r\n0\r\nAuthorization: Bearer evil\r\nX-T: 1${END}`,
      "x",
    ],
    ["a body that looks like a request", [`Content-Length: ${HIDDEN.length}`], HIDDEN, HIDDEN],
    [
      "an upgrade that nobody makes",
      ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__", "Content-Length: 1"],
      "x",
      "x",
    ],
    [
      "fields that Connection names",
      ["Connection: close, X-Own, Content-Type", "X-Own: 1", "Content-Type: a/b", "Content-Length: 1"],
      "x",
      "x",
    ],
    [
      "Connection naming what frames the body",
      ["Connection: close, Content-Length, Host, Authorization", "Content-Length: 1"],
      "x",
      "x",
    ],
    [
      "Keep-Alive, TE and Proxy-Connection",
      ["Keep-Alive: timeout=5", "TE: trailers, chunked", "Proxy-Connection: keep-alive", "Content-Length: 1"],
      "x",
      "x",
    ],
  ])("is one request with %s", async (_what, fields, rest, body) => {
    const before = bodies.length;
    const text = await attack(bed.via("/a"), fields, rest);
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
    expect(bodies.slice(before)).toEqual([body]);
    const names =
      bed.received
        .at(-1)
        ?.rawHeaders.filter((_, at) => at % 2 === 0)
        .map((name) => name.toLowerCase()) ?? [];
    for (const dropped of [
      "trailer",
      "upgrade",
      "http2-settings",
      "x-own",
      "x-t",
      "te",
      "keep-alive",
      "proxy-connection",
    ]) {
      expect(names).not.toContain(dropped);
    }
    expect(names.filter((name) => name === "authorization")).toHaveLength(1);
    expect(names.filter((name) => name === "host")).toHaveLength(1);
    expect(bed.received.at(-1)?.fields).toMatchObject({ host: bed.host, authorization: `Bearer ${bed.token}` });
  });
});

describe("a request target of another form", () => {
  it.each([
    ["absolute-form", "http://relay/via/plain/HOST/a", 200],
    ["absolute-form of the provider", "http://HOST/a", 404],
    ["absolute-form with a user", "http://relay@HOST/via/plain/HOST/a", 400],
    ["absolute-form of another scheme", "ftp://relay/via/plain/HOST/a", 404],
    ["two slashes in front", "//via/plain/HOST/a", 404],
    ["another case", "/VIA/plain/HOST/a", 404],
    ["an encoded name", "/%76ia/plain/HOST/a", 404],
    ["dot segments in front", "/x/../via/plain/HOST/a", 404],
    ["asterisk-form", "*", 404],
    ["dot segments for the host", "/via/plain/../HOST/a", 403],
    ["an encoded slash before the host", "/via/plain%2FHOST/HOST/a", 404],
    ["a fragment in the host", "/via/plain/HOST#x/a", 403],
    ["a query in the host", "/via/plain/HOST?/a", 200],
    ["raw bytes above ASCII", "/via/plain/HOST/\xe9", 400],
  ])("in %s is answered as such", async (_form, target, status) => {
    const before = bed.received.length;
    const text = await attack(target.replaceAll("HOST", bed.host), [], "", "GET");
    expect(text.slice(0, 12)).toMatch(new RegExp(`^HTTP/1\\.1 ${status}`));
    expect(bed.received.length - before).toBe(status === 200 ? 1 : 0);
  });
});

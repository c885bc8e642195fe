import { describe, expect, it, onTestFinished, vi } from "vitest";
import { connectRaw, reset, sendGood, sendRaw, start } from "./support.js";

const GET = "GET / HTTP/1.1\r\n";
const POST = "POST / HTTP/1.1\r\nHost: x\r\n";
const END = "\r\n\r\n";

/** Name, bytes, expected status. Numbers are those of the threat table. */
const REFUSED: [string, string | Buffer, number][] = [
  ["I01 Host: [", `${GET}Host: [${END}`, 400],
  ["I01 empty Host", `${GET}Host:${END}`, 400],
  ["I01 Host with a space", `${GET}Host: a b${END}`, 400],
  ["I01 Host: %zz", `${GET}Host: %zz${END}`, 400],
  ["I01 Host with port 99999", `${GET}Host: x:99999${END}`, 400],
  ["I01 Host with user information", `${GET}Host: a@b${END}`, 400],
  ["I01 Host with a control character", `${GET}Host: a\x01b${END}`, 400],
  ["I01 no Host", `${GET}Accept: */*${END}`, 400],
  ["I01 HTTP/1.0 without Host", `GET / HTTP/1.0${END}`, 400],
  ["I01 no 100-continue for a malformed Host", `${GET}Host: [\r\nExpect: 100-continue\r\nContent-Length: 1${END}`, 400],
  ["I03 two Host fields", `${GET}Host: x\r\nHost: y${END}`, 400],
  ["I03 two equal Host fields", `${GET}Host: x\r\nHost: x${END}`, 400],
  ["I05 HTTP/0.9", `GET /${END}`, 400],
  ["I05 HTTP/2.0 in a request line", `GET / HTTP/2.0\r\nHost: x${END}`, 400],
  [
    "I06 Transfer-Encoding and Content-Length",
    `${POST}Transfer-Encoding: chunked\r\nContent-Length: 3${END}0${END}`,
    400,
  ],
  ["I06 Transfer-Encoding twice", `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity${END}0${END}`, 400],
  ["I06 chunked, identity", `${POST}Transfer-Encoding: chunked, identity${END}0${END}`, 400],
  ["I06 xchunked", `${POST}Transfer-Encoding: xchunked${END}0${END}`, 400],
  ["I06 VT before chunked", `${POST}Transfer-Encoding: \x0bchunked${END}0${END}`, 400],
  ["I07 Content-Length twice", `${POST}Content-Length: 1\r\nContent-Length: 1${END}a`, 400],
  ["I07 Content-Length: 2, 2", `${POST}Content-Length: 2, 2${END}ab`, 400],
  ["I07 Content-Length: +2", `${POST}Content-Length: +2${END}ab`, 400],
  ["I07 Content-Length: -1", `${POST}Content-Length: -1${END}`, 400],
  ["I07 Content-Length: 2^64", `${POST}Content-Length: 18446744073709551616${END}`, 400],
  ["I07 space before the colon", `${GET}Host : x${END}`, 400],
  ["I07 folded field", `${GET}Host: x\r\nA: b\r\n c${END}`, 400],
  ["I07 bare LF", "GET / HTTP/1.1\nHost: x\n\n", 400],
  ["I07 bare CR", `${GET}Host: x\rA: b${END}`, 400],
  ["I07 NUL", `${GET}Host: x\r\nA: \0${END}`, 400],
  [
    "I08 chunk extension of 20 KB",
    `${POST}Transfer-Encoding: chunked${END}1;${"a".repeat(20_000)}\r\na\r\n0${END}`,
    400,
  ],
  ["I09 field of 20 KB", `${GET}Host: x\r\nA: ${"a".repeat(20_000)}${END}`, 431],
  ["I09 target of 20 KB", `GET /${"a".repeat(20_000)} HTTP/1.1\r\nHost: x${END}`, 431],
  ["I10 2,500 fields", `${GET}Host: x\r\n${"a:b\r\n".repeat(2_500)}\r\n`, 431],
  ["I10 101 fields", `${GET}Host: x\r\n${"a:b\r\n".repeat(100)}\r\n`, 431],
  ["I12 a preface that is not one", `PRI * HTTP/2.0\r\n\r\nXX${END}`, 400],
  ["I12 PRI as a request of HTTP/1", `PRI * HTTP/1.1\r\nHost: x${END}`, 400],
  ["I12 TLS ClientHello", Buffer.from(`1603010200010001fc0303${"00".repeat(507)}`, "hex"), 400],
  ["I12 Expect: foo", `${GET}Host: x\r\nExpect: foo${END}`, 417],
  ["I12 CONNECT", `CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443${END}`, 405],
  ["a body that ends too early", `${POST}Transfer-Encoding: chunked${END}5\r\nab`, 400],
];

describe("a hostile HTTP/1 client", () => {
  it.each(REFUSED)("is refused: %s", async (_name, bytes, status) => {
    const { port } = await start();
    const { socket, closed } = await connectRaw(port);
    if (_name === "a body that ends too early") socket.end(bytes);
    else socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
    const answer = await closed;
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer.match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
    expect(answer.toLowerCase()).toContain("connection: close");
    expect(await sendGood(port)).toContain("1.1 GET /good");
  });

  it.each([
    ["I10 100 fields", `${GET}Host: x\r\nConnection: close\r\n${"a:b\r\n".repeat(98)}\r\n`],
    ["I12 Upgrade: h2c", `${GET}Host: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA${END}`],
    ["I18 __proto__", `${GET}Host: x\r\n__proto__: x\r\nConnection: close${END}`],
    ["HTTP/1.0 with Host", `GET / HTTP/1.0\r\nHost: x${END}`],
    ["a target that is no URL", `GET //[%zz:99999 HTTP/1.1\r\nHost: x\r\nConnection: close${END}`],
  ])("is served: %s", async (_name, bytes) => {
    const { port, faults } = await start();
    expect(await sendRaw(port, bytes)).toMatch(/^HTTP\/1\.1 200 /);
    expect(faults).toEqual([]);
  });

  it("says in a refusal of ours what is wrong", async () => {
    const { port } = await start();
    const answer = await sendRaw(port, `${GET}Accept: */*${END}`);
    expect(answer).toContain("content-type: text/plain");
    expect(answer).toContain("The request has no Host");
  });

  it("can send much more after what was refused: it is told once, and reported once", async () => {
    const { port, faults } = await start();
    const { socket, closed } = await connectRaw(port);
    socket.write(`${GET}Host: x\r\nA: ${"a".repeat(20_000)}`);
    for (let sent = 0; sent < 100; sent++) await new Promise((resolve) => socket.write("a".repeat(20_000), resolve));
    expect(await closed).toMatch(/^HTTP\/1\.1 431 /);
    expect(faults).toHaveLength(1);
  });

  it("is let go as soon as it closes its side after a refusal", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const { listener, port } = await start();
    const rest = "a".repeat(1_000_000);
    expect(await sendRaw(port, `CONNECT x:1 HTTP/1.1\r\nHost: x:1${END}${rest}`)).toMatch(/^HTTP\/1\.1 405 /);
    expect(await sendRaw(port, `${GET}Host : x${END}${rest}`)).toMatch(/^HTTP\/1\.1 400 /);
    await listener.close(600_000);
  });

  it("never shows bytes of a malformed request to onFault", async () => {
    const { port, fault } = await start();
    await sendRaw(port, `${GET}Host: x\r\nAuthorization: CANARY\r\nbad header${END}`);
    const error = await fault("client");
    expect(error).toMatchObject({ code: "HPE_INVALID_HEADER_TOKEN" });
    expect(error).not.toHaveProperty("rawPacket");
  });

  it("does not get an answer that would be read as that of an earlier request", async () => {
    const { port } = await start({ handler: () => {} });
    expect(await sendRaw(port, `${GET}Host: x${END}not HTTP${END}`)).toBe("");
    expect(await sendRaw(port, `${GET}Host: x${END}CONNECT x:1 HTTP/1.1\r\nHost: x:1${END}`)).toBe("");
    expect(await sendRaw(port, `${GET}Host: x${END}${POST}Transfer-Encoding: chunked${END}no chunk`)).toBe("");
  });

  it("does not have a request performed that stands behind a refused one", async () => {
    const targets: (string | undefined)[] = [];
    const { port } = await start({
      handler: (req, res) => {
        targets.push(req.url);
        res.end();
      },
    });
    await sendRaw(
      port,
      `GET /1 HTTP/1.1\r\nHost: x${END}GET /2 HTTP/1.1\r\nHost: [${END}GET /3 HTTP/1.1\r\nHost: x${END}`,
    );
    expect(targets).toEqual(["/1"]);
  });

  it("I16 is disconnected after the last request of a connection", async () => {
    const { port } = await start({ limits: { maxRequestsPerSocket: 3 } });
    const answers = await sendRaw(port, `${GET}Host: x${END}`.repeat(9));
    expect(answers.match(/HTTP\/1\.1 200 /g)).toHaveLength(3);
  });

  it("I15 is turned away above the limit of connections, which is reported", async () => {
    const { port, fault } = await start({ limits: { maxConnections: 1, checkIntervalMs: 20 } });
    const first = await connectRaw(port);
    const second = await connectRaw(port);
    expect(await second.closed).toBe("");
    expect(await fault("connections")).toMatchObject({ message: "refused 1 over the limit of 1" });
    first.socket.write(`${GET}Host: x\r\nConnection: close${END}`);
    expect(await first.closed).toContain("200 OK");
  });

  it.each(["a reset", "an end of its side"])("may go away at any moment, with %s", async (how) => {
    const { port, faults } = await start();
    for (const bytes of ["P", GET, `${POST}Content-Length: 9${END}abc`, `${GET}Host: x${END}`]) {
      const { socket, closed } = await connectRaw(port);
      socket.write(bytes);
      await sendGood(port); // By then the server has read these bytes, so that it sees a reset as such.
      if (how === "a reset") reset(socket);
      else socket.end();
      await closed;
    }
    expect(await sendGood(port)).toContain("1.1 GET /good");
    expect(faults).toEqual([]);
  });
});

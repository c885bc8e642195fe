import { describe, expect, it } from "vitest";
import { decideTransferCoding } from "../../src/http/dispatch.js";
import { sendRaw, start } from "../http/support.js";

/**
 * A handler that needs no body answered before the parser saw that nobody could tell where the body ends: 405 came
 * first, and then 400 as if for the next request.
 */
const answerAtOnce = (_req: unknown, res: { writeHead(status: number): { end(): void } }) => res.writeHead(405).end();

const REQUEST = "GET /oauth/method/x/call HTTP/1.1\r\nHost: x\r\n";

describe("a request whose body has no end that can be told", () => {
  it.each([
    ["gzip", 400],
    ["identity", 400],
    ["xchunked", 400],
    ["chunked, identity", 400],
    ["chunked, chunked", 400],
    ["\x0bchunked", 400],
    ["chunked;q=1", 400],
    ["", 400],
    ["gzip, chunked", 501],
  ])("is answered once, before any handler: Transfer-Encoding: %j", async (coding, status) => {
    let handled = 0;
    const handler = (req: unknown, res: never) => {
      handled += 1;
      answerAtOnce(req, res);
    };
    const { port } = await start({ handler: handler as never });
    const answer = await sendRaw(port, `${REQUEST}Transfer-Encoding: ${coding}\r\n\r\n5\r\nhello\r\n0\r\n\r\n`);
    expect(answer.match(/^HTTP\/1\.1 \d+/gm)).toEqual([`HTTP/1.1 ${status}`]);
    expect(answer.toLowerCase()).toContain("connection: close");
    expect(handled).toBe(0);
  });

  it("is answered once, too, when a handler has answered before its chunks turn out to be none", async () => {
    const { port } = await start({ handler: answerAtOnce as never });
    const answer = await sendRaw(port, `${REQUEST}Transfer-Encoding: chunked\r\n\r\nno chunk`);
    expect(answer.match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 405"]);
  });

  it("is told so with a text, also when much of it follows", async () => {
    const { port } = await start({ handler: answerAtOnce as never });
    const answer = await sendRaw(port, `${REQUEST}Transfer-Encoding: gzip\r\n\r\n${"x".repeat(200_000)}`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*\r\n\r\nThis Transfer-Encoding does not show where the body ends/s);
  });
});

describe("decideTransferCoding()", () => {
  it.each([
    [[]],
    [["Transfer-Encoding", "chunked"]],
    [["transfer-encoding", " Chunked\t"]],
    [["A", "transfer-encoding"]],
  ])("leaves %j", (rawHeaders) => expect(decideTransferCoding(rawHeaders)).toBeUndefined());

  it("judges all fields of the name together", () => {
    const fields = ["Transfer-Encoding", "chunked", "A", "b", "TRANSFER-ENCODING", "identity"];
    expect(decideTransferCoding(fields)?.status).toBe(400);
  });
});

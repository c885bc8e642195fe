import { describe, expect, it } from "vitest";
import { answer } from "../support/raw-provider.js";
import { failureOf, get, provider, textOf, upstream, within } from "./upstream-for-test.js";

const fieldNames = (head: string) =>
  head
    .split("\r\n")
    .slice(1)
    .map((line) => line.slice(0, line.indexOf(":")));

describe("a request on the wire", () => {
  it("is the request line, one Host, Connection and the given fields, in order, nothing else", async () => {
    const peer = await provider((socket) => socket.write(answer("ok")));
    const headers = ["Authorization", "Bearer canary", "X-One", "1", "accept", "*/*", "X-One", "2"];
    await upstream().send(get(peer.origin, { path: "/a/b?c=%20d", headers }), within());
    expect(peer.requests[0]?.head).toBe(
      [
        "GET /a/b?c=%20d HTTP/1.1",
        `host: 127.0.0.1:${peer.port}`,
        "connection: keep-alive",
        "Authorization: Bearer canary",
        "X-One: 1",
        "accept: */*",
        "X-One: 2",
      ].join("\r\n"),
    );
  });

  it.each(["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "GET"])(
    "carries the exact bytes of a %s body",
    async (method) => {
      const peer = await provider((socket) => socket.write(answer("ok")));
      const body = Uint8Array.from({ length: 70_000 }, (_, at) => at & 0xff);
      await upstream().send(get(peer.origin, { method, headers: [], body }), within());
      expect(peer.requests[0]?.body.equals(body)).toBe(true);
      expect(fieldNames(peer.requests[0]?.head ?? "")).toEqual(["host", "connection", "content-length"]);
    },
  );

  it("carries only the part of a buffer that a view shows", async () => {
    const peer = await provider((socket) => socket.write(answer("ok")));
    const body = new Uint8Array(Buffer.from("before{}after").buffer, 0, 0);
    const view = Buffer.from("before{}after").subarray(6, 8);
    await upstream().send(get(peer.origin, { method: "POST", body: view }), within());
    await upstream().send(get(peer.origin, { method: "POST", body }), within());
    expect(peer.requests.map((request) => request.body.toString())).toEqual(["{}", ""]);
  });

  it.each([
    ["POST", "content-length: 0"],
    ["PUT", "content-length: 0"],
    ["DELETE", undefined],
    ["GET", undefined],
  ])("says of a %s without a body: %s", async (method, field) => {
    const peer = await provider((socket) => socket.write(answer("ok")));
    await upstream().send(get(peer.origin, { method }), within());
    expect(/content-length: \d+/.exec(peer.requests[0]?.head ?? "")?.[0]).toBe(field);
  });

  it.each([
    ["a token with a line feed", { headers: ["authorization", "Bearer canary\nx"] }],
    ["a value with NUL", { headers: ["x-a", "canary\u0000"] }],
    ["a value beyond latin1", { headers: ["x-a", "canary\u560a"] }],
    ["a name with a space", { headers: ["x canary", "1"] }],
    ["Transfer-Encoding", { headers: ["transfer-encoding", "chunked"] }],
    ["Expect", { headers: ["expect", "100-continue"] }],
    ["Upgrade", { headers: ["upgrade", "websocket"] }],
    ["a wrong Content-Length", { method: "POST", headers: ["content-length", "99"], body: Buffer.from("{}") }],
    ["a path with a space", { path: "/a b HTTP/1.1" }],
    ["a path with a line feed", { path: "/a\r\nX: y" }],
    ["a method that is none", { method: "GET / HTTP/1.1\r\nX:" }],
    ["a path that is a URL", { path: "evil.test/" }],
  ])("never leaves with %s, even if an earlier check has failed", async (_name, change) => {
    const peer = await provider((socket) => socket.write(answer("ok")));
    const client = upstream();
    await client.send(get(peer.origin), within());
    await failureOf(client.send(get(peer.origin, change), within()), "INTERNAL_ERROR");
    expect(peer.requests).toHaveLength(1);
    expect(await textOf(client.send(get(peer.origin), within()))).toBe("ok");
  });

  it("that cannot be written costs no more than two idle sockets", async () => {
    const peer = await provider((socket) => socket.write(answer("ok")));
    const client = upstream();
    await Promise.all([1, 2, 3].map(() => client.send(get(peer.origin), within())));
    await failureOf(client.send(get(peer.origin, { headers: ["x canary", "1"] }), within()), "INTERNAL_ERROR");
    await client.send(get(peer.origin), within());
    expect(peer.accepted).toBe(3);
  });

  it("is made of named members only", async () => {
    const peer = await provider((socket) => socket.write(answer("ok")));
    const smuggled = {
      ...get(peer.origin),
      upgrade: "websocket",
      query: { a: 1 },
      reset: true,
      socketPath: "/tmp/x",
      servername: "x",
    };
    await upstream().send(smuggled, within());
    expect(peer.requests[0]?.head).toContain("GET / HTTP/1.1\r\n");
    expect(peer.requests[0]?.head).not.toMatch(/upgrade|close/);
  });
});

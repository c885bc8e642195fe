import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { answer } from "../support/raw-provider.js";
import { failureOf, get, provider, textOf, upstream, within } from "../upstream/upstream-for-test.js";

const NOTICES: ReadonlyArray<readonly [string, (socket: Socket) => void]> = [
  ["its end", (socket) => socket.end()],
  ["a reset", (socket) => socket.resetAndDestroy()],
  ["a 408", (socket) => socket.end("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")],
  ["a 408 that closes and more", (socket) => socket.end("HTTP/1.1 408 No\r\nConnection: x-a, Close\r\n\r\nlate")],
  ["a 408 of HTTP/1.0", (socket) => socket.end("HTTP/1.0 408 Request Time-out\r\nConnection: close\r\n\r\nlate")],
];

/** Every second request of a socket meets a provider that has just given the socket up. */
async function givingUp(notice: (socket: Socket) => void) {
  return provider((socket, { head, indexOnSocket }) => {
    if (indexOnSocket > 0) notice(socket);
    else socket.write(head.startsWith("HEAD") ? "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" : answer("fine"));
  });
}

describe.each(NOTICES)("a kept socket that answers a request with %s", (_name, notice) => {
  it.each(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"])(
    "is followed by the same request on a new one: %s",
    async (method) => {
      const peer = await givingUp(notice);
      const client = upstream();
      await client.send(get(peer.origin), within());
      const body = method === "PUT" ? Buffer.from("payload") : undefined;
      const { statusCode } = await client.send(get(peer.origin, { method, path: "/again", body }), within());
      expect(statusCode).toBe(200);
      expect(peer.requests.map(({ head }) => head.split(" ", 2).join(" "))).toEqual([
        "GET /",
        `${method} /again`,
        `${method} /again`,
      ]);
      expect(peer.requests[2]?.body).toEqual(peer.requests[1]?.body);
    },
  );

  it.each(["POST", "PATCH"])("is an unanswered request that may have had its effect: %s", async (method) => {
    const peer = await givingUp(notice);
    const client = upstream();
    await client.send(get(peer.origin), within());
    const sent = client.send(get(peer.origin, { method, body: Buffer.from("payload") }), within());
    expect((await failureOf(sent, "PROVIDER_UNREACHABLE")).message).toMatch(/may have acted/);
    expect(peer.requests).toHaveLength(2);
    expect(await textOf(client.send(get(peer.origin), within()))).toBe("fine");
  });

  it("is followed by a streamed answer, too", async () => {
    const peer = await givingUp(notice);
    const client = upstream();
    await client.send(get(peer.origin), within());
    const { body } = await client.stream(get(peer.origin), within());
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe("fine");
  });
});

describe("a request that is sent again", () => {
  it("is sent twice at most", async () => {
    const peer = await provider((socket, { head }) => {
      if (head.startsWith("GET /first ")) socket.write(answer("fine"));
      else socket.end();
    });
    const client = upstream();
    await client.send(get(peer.origin, { path: "/first" }), within());
    await failureOf(client.send(get(peer.origin, { path: "/lost" }), within()), "PROVIDER_UNREACHABLE");
    expect(peer.requests).toHaveLength(3);
  });

  it("was not answered in part", async () => {
    const peer = await provider((socket, { indexOnSocket }) => {
      if (indexOnSocket > 0) socket.end("HTTP/1.1 2");
      else socket.write(answer("fine"));
    });
    const client = upstream();
    await client.send(get(peer.origin), within());
    await failureOf(client.send(get(peer.origin), within()), "PROVIDER_RESPONSE_INVALID");
    expect(peer.requests).toHaveLength(2);
  });

  it("was not the first one on its socket, nor answered there with a 408", async () => {
    const ending = await provider((socket) => socket.end());
    await failureOf(upstream().send(get(ending.origin), within()), "PROVIDER_UNREACHABLE");
    expect(ending.requests).toHaveLength(1);
    const late = await provider((socket) =>
      socket.end("HTTP/1.1 408 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
    );
    expect((await upstream().send(get(late.origin), within())).statusCode).toBe(408);
    expect(late.requests).toHaveLength(1);
  });

  it("was not answered with a 408 that leaves the socket open", async () => {
    const peer = await provider((socket, { indexOnSocket }) => {
      socket.write(indexOnSocket > 0 ? "HTTP/1.1 408 Own\r\nContent-Length: 3\r\n\r\nown" : answer("fine"));
    });
    const client = upstream();
    await client.send(get(peer.origin), within());
    const { statusCode, body } = await client.send(get(peer.origin), within());
    expect([statusCode, body.concat().toString()]).toEqual([408, "own"]);
  });
});

import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { answer, type Play, type RawRequest } from "../support/raw-provider.js";
import { get, provider, textOf, upstreamByDefault, within } from "../upstream/upstream-for-test.js";

const STRAY = answer("STRAY");

function pathOf({ head }: RawRequest): string {
  return head.split(" ")[1] as string;
}

/**
 * Sends a second answer some milliseconds after each answer, and holds back the answer to a request that comes on the
 * same socket before that: what reads a socket too early is answered wrongly for certain.
 */
function strayingAfter(ms: number): Play {
  const strays = new Map<Socket, Promise<void>>();
  return (socket, request) => {
    const before = strays.get(socket) ?? Promise.resolve();
    const stray = before.then(
      () =>
        new Promise<void>((resolve) => {
          socket.write(answer(`own ${pathOf(request)}`));
          setTimeout(() => socket.write(STRAY, () => resolve()), ms);
        }),
    );
    strays.set(socket, stray);
  };
}

describe("a second answer that is late", () => {
  it.each([0, 1, 2, 3, 5])("by %i ms answers no later call, of the same user or another one", async (ms) => {
    const peer = await provider(strayingAfter(ms));
    const client = upstreamByDefault({ distrustMs: 0 });
    for (let run = 0; run < 40; run += 1) {
      const user = `user-${run % 3}`;
      const sent = client.send(get(peer.origin, { path: `/${run}`, connectionId: user }), within());
      expect(await textOf(sent)).toBe(`own /${run}`);
    }
  });

  it.each([0, 1, 2, 3, 5])("by %i ms answers none of many calls at once", async (ms) => {
    const peer = await provider(strayingAfter(ms));
    const client = upstreamByDefault({ distrustMs: 0, maxConcurrent: 4 });
    const paths = Array.from({ length: 60 }, (_, index) => `/${index}`);
    const bodies = paths.map((path) => textOf(client.send(get(peer.origin, { path, connectionId: path }), within())));
    expect(await Promise.all(bodies)).toEqual(paths.map((path) => `own ${path}`));
  });

  it("and comes only after the next request is followed by the right one, and ends all reuse at this origin", async () => {
    const origins: string[] = [];
    const peer = await provider((socket, request) => {
      if (request.indexOnSocket > 0) socket.write(STRAY);
      setImmediate(() => socket.write(answer(`own ${pathOf(request)}`)));
    });
    const other = await provider((socket) => socket.write(answer("other")));
    const client = upstreamByDefault({ quietMs: 0, onStray: (origin) => origins.push(origin) });
    const call = (path: string) => textOf(client.send(get(peer.origin, { path }), within()));
    expect(await call("/1")).toBe("own /1");
    // Nobody can tell this one.
    expect(await call("/2")).toBe("STRAY");
    await peer.openAtMost(0);
    for (const path of ["/3", "/4", "/5"]) expect(await call(path)).toBe(`own ${path}`);
    expect(peer.accepted).toBe(4);
    expect(origins).toEqual([peer.origin]);
    for (let run = 0; run < 2; run += 1) await client.send(get(other.origin), within());
    expect(other.accepted).toBe(1);
  });

  it("in the same packet as the answer ends all reuse at this origin, too", async () => {
    const origins: string[] = [];
    const peer = await provider((socket, request) => {
      socket.write(Buffer.concat([answer(`own ${pathOf(request)}`), peer.accepted === 1 ? STRAY : Buffer.alloc(0)]));
    });
    const client = upstreamByDefault({ quietMs: 0, onStray: (origin) => origins.push(origin) });
    for (const path of ["/1", "/2", "/3"]) {
      expect(await textOf(client.send(get(peer.origin, { path }), within()))).toBe(`own ${path}`);
    }
    expect(peer.accepted).toBe(3);
    expect(origins).toEqual([peer.origin]);
  });

  it.each<[string, (socket: Socket) => void]>([
    ["its end", (socket) => socket.end()],
    ["a reset", (socket) => socket.resetAndDestroy()],
    ["a 408", (socket) => socket.end("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")],
    ["a 408 of HTTP/1.0", (socket) => socket.end("HTTP/1.0 408 Request Time-out\r\nConnection: close\r\n\r\nlate")],
    ["an empty line", (socket) => socket.write("\r\n")],
  ])("is not what closes an idle socket with %s: others are reused", async (_name, close) => {
    const peer = await provider((socket, request) => socket.write(answer(`own ${pathOf(request)}`)));
    const client = upstreamByDefault({ quietMs: 0 });
    await client.send(get(peer.origin), within());
    for (const socket of peer.open) close(socket);
    await peer.openAtMost(0);
    for (const path of ["/1", "/2", "/3"]) {
      expect(await textOf(client.send(get(peer.origin, { path }), within()))).toBe(`own ${path}`);
    }
    expect(peer.accepted).toBe(2);
  });
});

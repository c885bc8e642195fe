import type { Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { answer, type Play, type RawProvider } from "../support/raw-provider.js";
import { block, failureOf, get, inPollPhase, provider, textOf, upstream, within } from "./upstream-for-test.js";

const STRAY = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nSTRAY";
const own: Play = (socket, request) => socket.write(answer(`own ${request.head.split(" ")[1]}`));

describe("stray bytes on an idle socket (threats P22)", () => {
  /** Calls once, lets `spoil` do something to the idle socket, and calls again before the event loop can have read it. */
  async function callAround(
    spoil: (socket: Socket) => void,
    runs: number,
  ): Promise<{ mixes: number; accepted: number }> {
    const peer = await provider(own);
    const client = upstream();
    let mixes = 0;
    for (let run = 0; run < runs; run += 1) {
      await client.send(get(peer.origin, { path: `/${run}` }), within());
      const second = await inPollPhase(() => {
        for (const socket of peer.open) spoil(socket);
        block(1);
        return textOf(client.send(get(peer.origin, { path: "/mine" }), within()));
      });
      if (second !== "own /mine") mixes += 1;
    }
    return { mixes, accepted: peer.accepted };
  }

  it("never answer the next call while the event loop is blocked: 30 runs", async () => {
    const { mixes, accepted } = await callAround((socket) => socket.write(STRAY), 30);
    expect(mixes).toBe(0);
    expect(accepted).toBeGreaterThan(30);
  });

  it.each<[string, (socket: Socket) => void]>([
    ["garbage", (socket) => socket.write("this is not HTTP")],
    ["half a status line", (socket) => socket.write("HTTP/1.1 2")],
    ["one byte", (socket) => socket.write("\n")],
    ["an interim answer", (socket) => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n")],
    ["the end", (socket) => socket.end()],
    ["a reset", (socket) => socket.resetAndDestroy()],
    ["bytes and the end", (socket) => socket.end(STRAY)],
  ])("nor does the next call fail by them: %s", async (_name, spoil) => {
    const { mixes } = await callAround(spoil, 20);
    expect(mixes).toBe(0);
  });

  const SPOILERS = {
    "a stray answer": (socket: Socket) => socket.write(STRAY),
    garbage: (socket: Socket) => socket.write("this is not HTTP"),
    "the end": (socket: Socket) => socket.end(),
    "a reset": (socket: Socket) => socket.resetAndDestroy(),
  } as const;

  it.each(Object.entries(SPOILERS).flatMap(([name, spoil]) => [0, 1].map((count) => [name, count, spoil] as const)))(
    "neither answer nor fail a call that is not written yet: %s, %i turns after the call",
    async (_name, count, spoil) => {
      const peer = await provider(own);
      const client = upstream();
      for (let run = 0; run < 20; run += 1) {
        await client.send(get(peer.origin), within());
        const second = textOf(client.send(get(peer.origin, { path: "/mine" }), within()));
        await turns(count);
        for (const socket of peer.open) spoil(socket);
        expect(await second).toBe("own /mine");
      }
    },
  );

  it("in the same packet as the answer do not reach a call that waits for the socket", async () => {
    const peer = await provider((socket, request) => {
      const path = request.head.split(" ")[1] as string;
      socket.write(Buffer.concat([answer(`own ${path}`), Buffer.from(path === "/last" ? "" : STRAY)]));
    });
    const client = upstream({ maxConcurrent: 1 });
    const paths = ["/1", "/2", "/3", "/4", "/last"];
    const bodies = await Promise.all(paths.map((path) => textOf(client.send(get(peer.origin, { path }), within()))));
    expect(bodies).toEqual(paths.map((path) => `own ${path}`));
    expect(peer.accepted).toBe(5);
  });

  it("right behind the answer do not reach a call that takes the socket at once", async () => {
    const peer = await provider((socket, request) => {
      own(socket, request);
      setImmediate(() => socket.write(STRAY));
    });
    const client = upstream({ maxConcurrent: 1 });
    const paths = Array.from({ length: 100 }, (_, index) => `/${index}`);
    const bodies = await Promise.all(paths.map((path) => textOf(client.send(get(peer.origin, { path }), within()))));
    // A provider may send a stray answer after the request it pretends to answer; then nobody can tell. Here it does not.
    expect(bodies).toEqual(paths.map((path) => `own ${path}`));
  });
});

describe("reuse of sockets", () => {
  async function callTwice(reuse: "origin" | "connection" | "never", first: string, second: string) {
    const peer = await provider(own);
    const client = upstream({ reuse });
    await client.send(get(peer.origin, { connectionId: first }), within());
    await client.send(get(peer.origin, { connectionId: second }), within());
    return peer;
  }

  it("by origin shares a socket between connections", async () => {
    expect((await callTwice("origin", "one", "two")).accepted).toBe(1);
  });

  it("by connection shares it only within one connection", async () => {
    expect((await callTwice("connection", "one", "one")).accepted).toBe(1);
    expect((await callTwice("connection", "one", "two")).accepted).toBe(2);
  });

  describe("that were idle", () => {
    afterEach(() => void vi.useRealTimers());

    /** A provider that closes what it likes, and calls to it in turn; time passes as the test says. */
    async function idleWorld(keepAliveTimeoutMs = 60_000) {
      vi.useFakeTimers({ toFake: ["performance"] });
      const peer = await provider(own);
      const client = upstream({ keepAliveTimeoutMs });
      const call = () => textOf(client.send(get(peer.origin, { path: "/x" }), within()));
      /** Closes all sockets, when they have been idle for so long. */
      const closeAfter = async (idleMs: number) => {
        vi.advanceTimersByTime(idleMs);
        for (const socket of peer.open) socket.end();
        await peer.openAtMost(0);
        await turns(20);
      };
      return { peer, call, closeAfter };
    }

    it("carry another call a minute later", async () => {
      const { peer, call } = await idleWorld();
      await call();
      vi.advanceTimersByTime(59_000);
      await call();
      expect(peer.accepted).toBe(1);
    });

    it("are used no more from a second before the provider has been seen to close one", async () => {
      const { peer, call, closeAfter } = await idleWorld();
      await call();
      await closeAfter(5_000);
      await call();
      vi.advanceTimersByTime(3_900);
      await call();
      expect(peer.accepted).toBe(2);
      vi.advanceTimersByTime(4_100);
      await call();
      expect(peer.accepted).toBe(3);
    });

    it("are used for longer again when the provider is seen to keep one for longer", async () => {
      const { peer, call, closeAfter } = await idleWorld();
      await call();
      await closeAfter(5_000);
      await call();
      await closeAfter(30_000);
      await call();
      vi.advanceTimersByTime(28_000);
      await call();
      expect(peer.accepted).toBe(3);
    });

    it("are used for longer again when the provider has not closed one until the relay did", async () => {
      const { peer, call, closeAfter } = await idleWorld(1_000);
      await call();
      await closeAfter(1_500);
      await call();
      vi.advanceTimersByTime(1_000);
      await peer.openAtMost(0);
      await call();
      vi.advanceTimersByTime(900);
      await call();
      expect(peer.accepted).toBe(3);
    });

    it("are used for half as long as a provider keeps them that hardly does", async () => {
      const { peer, call, closeAfter } = await idleWorld();
      await call();
      await closeAfter(1_003);
      await call();
      vi.advanceTimersByTime(490);
      await call();
      expect(peer.accepted).toBe(2);
    });

    it("say nothing of others when they are closed at once, as by a restart", async () => {
      const { peer, call, closeAfter } = await idleWorld();
      await call();
      await closeAfter(900);
      await call();
      vi.advanceTimersByTime(30_000);
      await call();
      expect(peer.accepted).toBe(2);
    });
  });

  it("can be switched off, and the provider is told so", async () => {
    const peer = await callTwice("never", "one", "one");
    expect(peer.accepted).toBe(2);
    for (const { head } of peer.requests) expect(head.match(/^connection: .*$/gm)).toEqual(["connection: close"]);
    await peer.openAtMost(0);
  });

  it("never mixes providers with and without a private network", async () => {
    const peer = await provider(own);
    const client = upstream();
    await client.send(get(peer.origin, { allowPrivateNetwork: true }), within());
    await client.send(get(peer.origin, { allowPrivateNetwork: false }), within());
    expect(peer.accepted).toBe(2);
  });

  it.each<[string, Play]>([
    ["Connection: close", (socket) => socket.write(answer("x", "Connection: close"))],
    ["HTTP/1.0", (socket) => socket.end("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx")],
    ["Keep-Alive: timeout=0", (socket) => socket.write(answer("x", "Connection: keep-alive", "Keep-Alive: timeout=0"))],
    ["the end of the socket", (socket) => socket.end(answer("x"))],
  ])("ends with %s", async (_name, play) => {
    const peer = await provider(play);
    const client = upstream();
    for (let run = 1; run <= 3; run += 1) {
      expect(await textOf(client.send(get(peer.origin), within()))).toBe("x");
      await peer.openAtMost(0);
      expect(peer.accepted).toBe(run);
    }
  });

  it("ends when a socket was idle for the keep-alive time", async () => {
    const peer = await provider(own);
    await upstream({ keepAliveTimeoutMs: 20 }).send(get(peer.origin), within());
    await peer.openAtMost(0);
  });

  it("is not longer than configured because a provider says so", async () => {
    const peer = await provider((socket) => socket.write(answer("x", "Keep-Alive: timeout=600")));
    await upstream({ keepAliveTimeoutMs: 20 }).send(get(peer.origin), within());
    await peer.openAtMost(0);
  });

  it("goes on after 1,000 calls with an error status, on one socket", async () => {
    const peer = await provider((socket) => socket.write("HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops"));
    const client = upstream();
    for (let run = 0; run < 1000; run += 1) await client.send(get(peer.origin), within());
    expect(peer.accepted).toBe(1);
    expect(peer.open.size).toBe(1);
  });
});

describe("calls at once", () => {
  /** Answers only when told to, one by one. */
  async function heldProvider() {
    const held: Array<() => void> = [];
    const peer = await provider((socket, request) => held.push(() => own(socket, request)));
    return { peer, held };
  }

  it("are as many as allowed; the others wait in order of arrival", async () => {
    const { peer, held } = await heldProvider();
    const client = upstream({ maxConcurrent: 2 });
    const paths = ["/1", "/2", "/3", "/4", "/5"];
    const bodies = Promise.all(paths.map((path) => textOf(client.send(get(peer.origin, { path }), within()))));
    await peer.seen(2);
    for (let index = 0; index < 5; index += 1) {
      expect(peer.requests.length).toBeLessThanOrEqual(index + 2);
      await peer.seen(index + 1);
      held[index]?.();
    }
    expect(await bodies).toEqual(paths.map((path) => `own ${path}`));
    expect(peer.requests.map(({ head }) => head.split(" ")[1])).toEqual(paths);
    expect(peer.accepted).toBe(2);
  });

  it("are counted by origin, not by connection, and never keep more sockets than that", async () => {
    const { peer, held } = await heldProvider();
    const client = upstream({ maxConcurrent: 2, reuse: "connection" });
    const ids = ["a", "b", "c", "d", "e", "f"];
    const all = Promise.all(ids.map((connectionId) => client.send(get(peer.origin, { connectionId }), within())));
    for (let index = 0; index < ids.length; index += 1) {
      await peer.seen(index + 1);
      expect(peer.requests.length).toBeLessThanOrEqual(index + 2);
      held[index]?.();
    }
    await all;
    expect(peer.accepted).toBe(6);
    await peer.openAtMost(2);
  });

  it("to one origin do not hold up another origin", async () => {
    const silent = await provider(() => {});
    const good = await provider(own);
    const client = upstream({ maxConcurrent: 1 });
    const stuck = [client.send(get(silent.origin), within(500)), client.send(get(silent.origin), within(500))];
    const failed = Promise.all(stuck.map((call) => failureOf(call, "PROVIDER_TIMEOUT")));
    expect(await textOf(client.send(get(good.origin), within()))).toBe("own /");
    await failed;
  });

  it("are refused when too many wait, so that one slow origin does not take every place", async () => {
    const { peer, held } = await heldProvider();
    const client = upstream({ maxConcurrent: 1, maxWaiting: 1 });
    const first = client.send(get(peer.origin, { path: "/first" }), within());
    const second = client.send(get(peer.origin, { path: "/second" }), within());
    const third = await failureOf(client.send(get(peer.origin, { path: "/third" }), within()), "OVERLOADED");
    expect(third.message).toMatch(/this one was not sent/);
    await peer.seen(1);
    held[0]?.();
    await peer.seen(2);
    held[1]?.();
    expect([await textOf(first), await textOf(second)]).toEqual(["own /first", "own /second"]);
    expect(peer.requests).toHaveLength(2);
  });

  it("leave the queue by deadline and by signal, and are never sent then", async () => {
    const { peer, held } = await heldProvider();
    const client = upstream({ maxConcurrent: 1 });
    const abort = new AbortController();
    const first = client.send(get(peer.origin, { path: "/first" }), within());
    await peer.seen(1);
    const late = failureOf(client.send(get(peer.origin, { path: "/late" }), within(20)), "PROVIDER_TIMEOUT");
    const gone = client.send(get(peer.origin, { path: "/gone" }), within(10_000, abort.signal));
    const last = client.send(get(peer.origin, { path: "/last" }), within());
    expect((await late).message).toMatch(/^No connection/);
    abort.abort(new Error("caller left"));
    await expect(gone).rejects.toThrow("caller left");
    held[0]?.();
    await peer.seen(2);
    held[1]?.();
    expect(await textOf(first)).toBe("own /first");
    expect(await textOf(last)).toBe("own /last");
    expect(peer.requests).toHaveLength(2);
    expect(peer.accepted).toBe(1);
  });

  it("are 500 without a mix", async () => {
    const peer = await provider(own);
    const client = upstream({ maxConcurrent: 20, maxWaiting: 600 });
    const paths = Array.from({ length: 500 }, (_, index) => `/${index}`);
    const bodies = await Promise.all(paths.map((path) => textOf(client.send(get(peer.origin, { path }), within()))));
    expect(bodies).toEqual(paths.map((path) => `own ${path}`));
    // The others are for another application.
    expect(peer.accepted).toBe(18);
  });
});

describe("pools", () => {
  it("are no more than allowed: the one used longest ago is closed", async () => {
    const peers = [await provider(own), await provider(own), await provider(own)] as const;
    const client = upstream({ maxPools: 2 });
    const call = (index: 0 | 1 | 2) => client.send(get(peers[index].origin), within());
    await call(0);
    await call(1);
    await call(0);
    await call(2);
    await peers[1].openAtMost(0);
    expect(peers[0].open.size).toBe(1);
    expect(peers[2].open.size).toBe(1);
    await call(0);
    expect(peers[0].accepted).toBe(1);
  });

  it("with calls end after them, when all are busy", async () => {
    const held: Array<() => void> = [];
    const busy = await provider((socket, request) => held.push(() => own(socket, request)));
    const other = await provider(own);
    const client = upstream({ maxPools: 1 });
    const running = textOf(client.send(get(busy.origin), within()));
    await busy.seen(1);
    await client.send(get(other.origin), within());
    held[0]?.();
    expect(await running).toBe("own /");
    await busy.openAtMost(0);
  });

  it("that are idle go before older ones that are busy", async () => {
    const held: Array<() => void> = [];
    const busy = await provider((socket, request) => held.push(() => own(socket, request)));
    const [idle, last] = [await provider(own), await provider(own)];
    const client = upstream({ maxPools: 2 });
    const running = textOf(client.send(get(busy.origin), within()));
    await busy.seen(1);
    await client.send(get(idle.origin), within());
    await client.send(get(last.origin), within());
    await idle.openAtMost(0);
    held[0]?.();
    await running;
    expect(busy.open.size).toBe(1);
  });
});

describe("idle sockets", () => {
  it("of all origins are no more than allowed: the one used longest ago is closed", async () => {
    const peers = [await provider(own), await provider(own), await provider(own)] as const;
    const client = upstream({ maxKept: 2 });
    const call = (index: 0 | 1 | 2) => client.send(get(peers[index].origin), within());
    for (const index of [0, 1, 0, 2] as const) await call(index);
    await peers[1].openAtMost(0);
    expect([peers[0].open.size, peers[2].open.size]).toEqual([1, 1]);
    for (const index of [1, 2, 0, 1, 2] as const) await call(index);
    expect(peers.map(({ accepted }) => accepted)).toEqual([2, 3, 2]);
  });

  it("are no more than allowed after many calls at once, all of which are answered", async () => {
    const peers = await Promise.all(Array.from({ length: 8 }, () => provider(own)));
    const client = upstream({ maxKept: 4 });
    const calls = Array.from({ length: 200 }, (_, at) =>
      client.send(get((peers[at % 8] as RawProvider).origin), within()),
    );
    expect((await Promise.all(calls)).every(({ statusCode }) => statusCode === 200)).toBe(true);
    await expect.poll(() => peers.reduce((sum, { open }) => sum + open.size, 0)).toBe(4);
  });
});

/** Waits for that many check phases of the event loop. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

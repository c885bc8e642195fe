import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { RequestProgress, UpstreamRequest } from "../../src/upstream/request.js";
import { answer, type Play, type RawProvider } from "../support/raw-provider.js";
import { failureOf, get, provider, textOf, upstream, within } from "./upstream-for-test.js";

/** Charged when the decoder is created. */
const GZIP_WINDOW_BYTES = 32 * 1024;
const OK = "HTTP/1.1 200 OK\r\n";

describe("a request that has become too old to be sent", () => {
  it("is asked about in the moment before its first byte, and not sent", async () => {
    const peer = await provider((socket) => socket.end(`${OK}Content-Length: 0\r\n\r\n`));
    const client = upstream();
    let isYoung = true;
    const limits = { ...within(10_000), mayBegin: () => isYoung };
    expect((await client.send(get(peer.origin), limits)).statusCode).toBe(200);
    const progress: RequestProgress = { queueMs: undefined };
    const sent = client.send(get(peer.origin), limits, progress);
    isYoung = false;
    await expect(sent).rejects.toMatchObject({ reason: "PROVIDER_TIMEOUT" });
    expect(progress.wasSent).toBeUndefined();
    expect(peer.requests).toHaveLength(1);
  });
});

describe("an abort by the caller", () => {
  /** Where a call can be when its caller leaves. `reached` resolves there. */
  type Point = [
    name: string,
    play: Play,
    reached: (peer: RawProvider) => Promise<unknown>,
    request?: Partial<UpstreamRequest>,
  ];
  const POINTS: readonly Point[] = [
    ["before its turn", () => {}, async () => {}],
    ["in its first turn", () => {}, () => new Promise((resolve) => setImmediate(resolve))],
    ["before the answer", () => {}, (peer) => peer.seen(1)],
    [
      "while its body is being sent",
      (socket) => socket.pause(),
      (peer) => until(() => peer.open.size === 1),
      {
        method: "POST",
        body: Buffer.alloc(8_000_000),
      },
    ],
    ["in the fields", (socket) => socket.write(OK), (peer) => peer.seen(1)],
    ["in the body", (socket) => socket.write(`${OK}Content-Length: 9\r\n\r\nabc`), (peer) => peer.seen(1)],
    [
      "in endless chunks",
      (socket) => socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`),
      (peer) => peer.seen(1),
    ],
  ];

  it.each(POINTS)(
    "%s ends it with the caller's reason and closes its socket",
    async (_name, play, reached, request) => {
      const peer = await provider(play);
      const client = upstream();
      const abort = new AbortController();
      const reason = new Error("caller left");
      const sent = client.send(get(peer.origin, request), within(10_000, abort.signal));
      const rejected = expect(sent).rejects.toBe(reason);
      await reached(peer);
      abort.abort(reason);
      await rejected;
      await peer.openAtMost(0);
      expect(peer.accepted).toBeLessThanOrEqual(1);
    },
  );

  it("while the name is being resolved ends it; nothing is dialled", async () => {
    const peer = await provider(() => {});
    let answerName = (_: [{ address: string; family: number }]) => {};
    const asked = new Promise<void>((resolve) => {
      answerName = () => resolve();
    });
    const client = upstream({
      resolve: () =>
        new Promise((resolve) => {
          answerName([{ address: "", family: 4 }]);
          answerName = resolve;
        }),
    });
    const abort = new AbortController();
    const sent = client.send(get(`http://api.test:${peer.port}`), within(10_000, abort.signal));
    const rejected = expect(sent).rejects.toThrow("caller left");
    await asked;
    abort.abort(new Error("caller left"));
    await rejected;
    answerName([{ address: "127.0.0.1", family: 4 }]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(peer.accepted).toBe(0);
  });

  it("in a TLS handshake ends it and closes the socket", async () => {
    const peer = await provider(() => {});
    const abort = new AbortController();
    const sent = upstream().send(get(`https://127.0.0.1:${peer.port}`), within(10_000, abort.signal));
    const rejected = expect(sent).rejects.toThrow("caller left");
    await until(() => peer.open.size === 1);
    abort.abort(new Error("caller left"));
    await rejected;
    await peer.openAtMost(0);
    expect(peer.accepted).toBe(1);
  });

  it("while the body is being decoded ends it", async () => {
    const peer = await provider((socket) =>
      socket.end(answer(gzipSync(Buffer.alloc(9_000_000)), "Content-Encoding: gzip")),
    );
    const abort = new AbortController();
    const sent = upstream().send(get(peer.origin), within(10_000, abort.signal));
    const rejected = expect(sent).rejects.toThrow("caller left");
    await peer.seen(1);
    await peer.openAtMost(0);
    abort.abort(new Error("caller left"));
    await rejected;
  });

  it("while the body is being decoded ends the decoding", async () => {
    const body = gzipSync(Buffer.alloc(9_000_000));
    const peer = await provider((socket) => socket.end(answer(body, "Content-Encoding: gzip")));
    const abort = new AbortController();
    let [isDecoding, chargedLate] = [false, 0];
    let onGivenBack = () => {};
    const ended = new Promise<void>((resolve) => {
      onGivenBack = resolve;
    });
    const reserve = (bytes: number) => {
      if (abort.signal.aborted) chargedLate += bytes;
      else if (isDecoding) abort.abort(new Error("caller left"));
      isDecoding ||= bytes === GZIP_WINDOW_BYTES;
      return true;
    };
    const memory = { reserve, giveBack: () => onGivenBack() };
    const sent = upstream().send(get(peer.origin), { ...within(10_000, abort.signal), memory });
    await expect(sent).rejects.toThrow("caller left");
    await ended;
    expect(chargedLate).toBe(0);
  });

  it("before the call means that there is no call", async () => {
    const peer = await provider(() => {});
    const gone = upstream().send(get(peer.origin), within(10_000, AbortSignal.abort("gone")));
    await expect(gone).rejects.toBe("gone");
    expect(peer.accepted).toBe(0);
  });

  it("after the answer does nothing, and the signal is let go", async () => {
    const peer = await provider((socket) => socket.write(answer("ok")));
    const client = upstream();
    const abort = new AbortController();
    let listeners = 0;
    const { signal } = abort;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listeners += 1;
      addEventListener.apply(signal, args);
    };
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listeners -= 1;
      removeEventListener.apply(signal, args);
    };
    for (let run = 0; run < 3; run += 1) await client.send(get(peer.origin), within(10_000, signal));
    await failureOf(client.send(get(peer.origin, { path: "no path" }), within(10_000, signal)), "INTERNAL_ERROR");
    expect(listeners).toBe(0);
    abort.abort();
    expect(await textOf(client.send(get(peer.origin), within()))).toBe("ok");
  });

  it("of one call leaves the others alone", async () => {
    const held: Socket[] = [];
    const peer = await provider((socket) => held.push(socket));
    const client = upstream();
    const abort = new AbortController();
    const gone = client.send(get(peer.origin), within(10_000, abort.signal));
    const rejected = expect(gone).rejects.toThrow();
    const kept = client.send(get(peer.origin), within());
    await peer.seen(2);
    abort.abort();
    await rejected;
    await peer.openAtMost(1);
    for (const socket of held) socket.write(answer("ok"));
    expect(await textOf(kept)).toBe("ok");
  });
});

describe("a deadline", () => {
  it("that has passed means that there is no call", async () => {
    const peer = await provider(() => {});
    await failureOf(upstream().send(get(peer.origin), within(-1)), "PROVIDER_TIMEOUT");
    expect(peer.accepted).toBe(0);
  });

  it("that is never does not end a call at once", async () => {
    const peer = await provider((socket) => socket.write(answer("ok")));
    const forever = { deadline: Number.POSITIVE_INFINITY, signal: undefined };
    expect(await textOf(upstream().send(get(peer.origin), forever))).toBe("ok");
  });

  it("says whether the provider may have acted", async () => {
    const peer = await provider(() => {});
    const silent = await failureOf(upstream().send(get(peer.origin), within(250)), "PROVIDER_TIMEOUT");
    expect(silent.message).toMatch(/may have acted/);
    const shaking = upstream().send(get(`https://127.0.0.1:${peer.port}`), within(250));
    expect((await failureOf(shaking, "PROVIDER_TIMEOUT")).message).not.toMatch(/may have acted/);
  });

  it("does not cost a second socket", async () => {
    const peer = await provider(() => {});
    const client = upstream();
    const calls = Array.from({ length: 20 }, () =>
      failureOf(client.send(get(peer.origin), within(250)), "PROVIDER_TIMEOUT"),
    );
    await Promise.all(calls);
    await peer.openAtMost(0);
    expect(peer.accepted).toBe(20);
    expect(peer.requests).toHaveLength(20);
  });
});

describe("close()", () => {
  it("ends idle sockets at once", async () => {
    const peer = await provider((socket) => socket.write(answer("ok")));
    const client = upstream();
    await client.send(get(peer.origin), within());
    await client.close();
    await peer.openAtMost(0);
  });

  it("waits for running and queued calls, takes no new ones, and can be called twice", async () => {
    const held: Socket[] = [];
    const peer = await provider((socket) => held.push(socket));
    const client = upstream({ maxConcurrent: 1 });
    const calls = Promise.all([1, 2].map(() => textOf(client.send(get(peer.origin), within()))));
    await peer.seen(1);
    let isClosed = false;
    const closed = Promise.all([client.close(), client.close()]).then(() => {
      isClosed = true;
    });
    await failureOf(client.send(get(peer.origin), within()), "PROVIDER_UNREACHABLE");
    held[0]?.write(answer("1"));
    await peer.seen(2);
    expect(isClosed).toBe(false);
    held[1]?.write(answer("2"));
    expect(await calls).toEqual(["1", "2"]);
    await closed;
    await peer.openAtMost(0);
  });
});

/** Looks once in every turn of the event loop. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

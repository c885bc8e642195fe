import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, it, onTestFinished } from "vitest";
import { connectHttp2, connectRaw, echo, gate, request, start } from "../http/support.js";

/** Resolves when something is told on a channel. */
function subscribedOnce(channel: string): Promise<void> {
  return new Promise((resolve) => {
    const listener = () => {
      unsubscribe(channel, listener);
      resolve();
    };
    subscribe(channel, listener);
  });
}

/** Counts the turns of the event loop until the test ends. */
function countTurns(): { readonly now: number } {
  let now = 0;
  let isOver = false;
  const next = () => {
    now += 1;
    if (!isOver) setImmediate(next);
  };
  next();
  onTestFinished(() => {
    isOver = true;
  });
  return {
    get now() {
      return now;
    },
  };
}

/** How many of the turns in a list are the same, at most. */
function mostInOneTurn(turns: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const turn of turns) counts.set(turn, (counts.get(turn) ?? 0) + 1);
  return Math.max(...counts.values());
}

describe("requests that are sent ahead", () => {
  it("are begun one by one over HTTP/1.1, one in a turn of the event loop", async () => {
    const turns = countTurns();
    const begun: number[] = [];
    let running = 0;
    let most = 0;
    const { port } = await start({
      handler: async (req, res) => {
        begun.push(turns.now);
        most = Math.max(most, ++running);
        await echo(req, res);
        running -= 1;
      },
    });
    const client = await connectRaw(port);
    // More than one packet, and more than may wait; their bodies tell them apart.
    const count = 2000;
    const requests = Array.from({ length: count }, (_, at) => {
      const connection = at === count - 1 ? "close" : "keep-alive";
      return `POST /${at} HTTP/1.1\r\nHost: relay.test\r\nConnection: ${connection}\r\nContent-Length: 5\r\n\r\n${10_000 + at}`;
    });
    client.socket.write(requests.join(""));
    const answers = (await client.closed).match(/1\.1 POST \/\d+ \d{5}/g);
    expect(answers).toEqual(requests.map((_, at) => `1.1 POST /${at} ${10_000 + at}`));
    expect(begun.length).toBe(count);
    expect(mostInOneTurn(begun)).toBe(1);
    expect(most).toBe(1);
  });

  it("are begun over HTTP/1.1 one in a turn of the event loop, of all connections together", async () => {
    const turns = countTurns();
    const begun: number[] = [];
    const { port } = await start({
      handler: (req, res) => {
        if (req.url !== "/first") begun.push(turns.now);
        return echo(req, res);
      },
    });
    const ahead = "GET /ahead HTTP/1.1\r\nHost: relay.test\r\n\r\n".repeat(50);
    const clients = await Promise.all(Array.from({ length: 8 }, () => connectRaw(port)));
    for (const { socket } of clients) {
      socket.write(`GET /first HTTP/1.1\r\nHost: relay.test\r\n\r\n${ahead}`);
      socket.write("GET /last HTTP/1.1\r\nHost: relay.test\r\nConnection: close\r\n\r\n");
    }
    await Promise.all(clients.map(({ closed }) => closed));
    expect(begun).toHaveLength(8 * 51);
    expect(mostInOneTurn(begun)).toBe(1);
  });

  it("are read no further over HTTP/1.1 while many of them wait", async () => {
    let parsed = 0;
    const count = () => {
      parsed += 1;
    };
    subscribe("http.server.request.start", count);
    onTestFinished(() => void unsubscribe("http.server.request.start", count));
    let begun = 0;
    let mostAhead = 0;
    const { port } = await start({
      handler: (req, res) => {
        begun += 1;
        mostAhead = Math.max(mostAhead, parsed - begun);
        return echo(req, res);
      },
    });
    const client = await connectRaw(port);
    const post = (connection: string) =>
      `POST / HTTP/1.1\r\nHost: relay.test\r\nConnection: ${connection}\r\nContent-Length: 1000\r\n\r\n${"x".repeat(1000)}`;
    client.socket.write(post("keep-alive").repeat(3000) + post("close"));
    expect((await client.closed).match(/HTTP\/1\.1 200/g)).toHaveLength(3001);
    // What two reads of 64 KiB hold.
    expect(mostAhead).toBeLessThan(130);
  });

  it("end their connection over HTTP/1.1 when too many wait on all of them, and leave alone one on which few do", async () => {
    const held = gate();
    const { port, fault } = await start({
      limits: { maxQueuedRequests: 200, checkIntervalMs: 10 },
      handler: (req, res) => void held.opened.then(() => echo(req, res)),
    });
    const get = (path: string, connection = "keep-alive") =>
      `GET ${path} HTTP/1.1\r\nHost: relay.test\r\nConnection: ${connection}\r\n\r\n`;
    const greedy = await Promise.all([connectRaw(port), connectRaw(port)]);
    // A packet or two; what is over the limit comes with the first.
    for (const { socket } of greedy) socket.write(get("/many").repeat(1000));
    expect(await Promise.all(greedy.map(({ closed }) => closed))).toEqual(["", ""]);
    expect(String(await fault("connections"))).toMatch(/refused \d over the limit of 200 pipelined requests/);
    // Those that have gone count no more.
    const [modest, other] = await Promise.all([connectRaw(port), connectRaw(port)]);
    modest.socket.write(get("/few").repeat(5) + get("/few", "close"));
    other.socket.write(get("/some").repeat(150) + get("/some", "close"));
    held.open();
    expect((await modest.closed).match(/1\.1 GET \/few/g)).toHaveLength(6);
    expect((await other.closed).match(/1\.1 GET \/some/g)).toHaveLength(151);
  });

  it("are parsed of no more than a packet or two in a turn of the event loop when too many wait", async () => {
    const turns = countTurns();
    const parsed: number[] = [];
    const count = () => void parsed.push(turns.now);
    subscribe("http.server.request.start", count);
    onTestFinished(() => void unsubscribe("http.server.request.start", count));
    const { port } = await start({ limits: { maxQueuedRequests: 100 }, handler: () => {} });
    const get = "GET / HTTP/1.1\r\nHost: r\r\n\r\n";
    // Those of the first half have been used before: what comes on them goes to the parser another way.
    const clients = await Promise.all(Array.from({ length: 20 }, () => connectRaw(port)));
    for (const { socket } of clients.slice(10)) socket.write(get);
    while (parsed.length < 10) await new Promise((resolve) => setImmediate(resolve));
    for (const { socket } of clients) socket.write(get.repeat(2000));
    await Promise.all(clients.map(({ closed }) => closed));
    expect(parsed.length).toBeGreaterThan(10_000);
    expect(mostInOneTurn(parsed)).toBeLessThan(3 * 2000);
  });

  it("are not even parsed over HTTP/1.1 behind the last request of a connection", async () => {
    let parsed = 0;
    const count = () => {
      parsed += 1;
    };
    subscribe("http.server.request.start", count);
    onTestFinished(() => void unsubscribe("http.server.request.start", count));
    let written: (() => void) | undefined;
    const allWritten = new Promise<void>((resolve) => {
      written = resolve;
    });
    const { port } = await start({
      limits: { maxRequestsPerSocket: 3 },
      // The last one is answered when all that stands behind it has been read.
      handler: (req, res) =>
        void (Reflect.get(res, "shouldKeepAlive") === false ? allWritten : Promise.resolve()).then(() =>
          echo(req, res),
        ),
    });
    const client = await connectRaw(port);
    const post = `POST / HTTP/1.1\r\nHost: relay.test\r\nContent-Length: 1000\r\n\r\n${"x".repeat(1000)}`;
    client.socket.write(post.repeat(8000), () => written?.());
    expect((await client.closed).match(/HTTP\/1\.1 200/g)).toHaveLength(3);
    // Of 8 MB those in the first packets have been by then.
    expect(parsed).toBeGreaterThanOrEqual(3);
    expect(parsed).toBeLessThan(1000);
  });

  it("are given up over HTTP/1.1 without a stack for each when their client has gone", async () => {
    const { stackTraceLimit } = Error;
    const errors: Error[] = [];
    const { port } = await start({ handler: (req) => void req.on("error", (error) => errors.push(error)) });
    const client = await connectRaw(port);
    client.socket.write("POST / HTTP/1.1\r\nHost: relay.test\r\nContent-Length: 9\r\n\r\n12345");
    await subscribedOnce("http.server.request.start");
    client.socket.destroy();
    await client.closed;
    while (errors.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(errors.map(({ stack }) => stack)).toEqual(["Error: aborted"]);
    expect(Error.stackTraceLimit).toBe(stackTraceLimit);
  });

  it("leave other errors their stacks over HTTP/1.1, even when giving them up fails", async () => {
    const { stackTraceLimit } = Error;
    const others = process.listeners("uncaughtException");
    onTestFinished(() => {
      process.removeAllListeners("uncaughtException");
      for (const listener of others) process.on("uncaughtException", listener);
      Error.stackTraceLimit = stackTraceLimit;
    });
    process.removeAllListeners("uncaughtException");
    const thrown = new Promise((resolve) => process.once("uncaughtException", resolve));
    const failure = new Error("thrown for the test");
    const { port } = await start({
      handler: (req) => {
        req.destroy = () => {
          throw failure;
        };
      },
    });
    const client = await connectRaw(port);
    client.socket.write("POST / HTTP/1.1\r\nHost: relay.test\r\nContent-Length: 9\r\n\r\n12345");
    await subscribedOnce("http.server.request.start");
    client.socket.destroy();
    expect(await thrown).toBe(failure);
    expect(Error.stackTraceLimit).toBe(stackTraceLimit);
  });

  it("are not begun over HTTP/1.1 once their client has gone", async () => {
    const begun: string[] = [];
    const { port } = await start({ handler: (req) => void begun.push(req.url ?? "") });
    const client = await connectRaw(port);
    client.socket.write("GET /p HTTP/1.1\r\nHost: relay.test\r\n\r\n".repeat(5));
    while (begun.length === 0) await new Promise((resolve) => setImmediate(resolve));
    client.socket.destroy();
    await client.closed;
    const { port: other } = await start();
    await (await connectRaw(other)).socket.end();
    expect(begun).toEqual(["/p"]);
  });

  it("are begun a few in a turn over HTTP/2, in the order they came", async () => {
    const turns = countTurns();
    const begun: number[] = [];
    const paths: string[] = [];
    const { port } = await start({
      handler: (req, res) => {
        begun.push(turns.now);
        paths.push(req.url ?? "");
        return echo(req, res);
      },
    });
    const session = await connectHttp2(port);
    const sent = Array.from({ length: 100 }, (_, at) => `/${at}`);
    const answers = await Promise.all(sent.map((path) => request(session, { ":path": path })));
    expect(answers.map(({ status }) => status)).toEqual(sent.map(() => 200));
    expect(paths).toEqual(sent);
    expect(mostInOneTurn(begun)).toBeLessThanOrEqual(8);
  });
});

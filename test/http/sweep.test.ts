import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import type { Http2Session, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { DEFAULT_LIMITS } from "../../src/http/limits.js";
import { createConnections, sweep } from "../../src/http/sweep.js";

/** Longer ago than every limit. */
const LONG_AGO_MS = -10_000_000;

function socketWith(state: Partial<Socket>): Socket {
  const socket = { writableLength: 0, writableEnded: false, destroy: vi.fn(), ...state };
  return Object.assign(new EventEmitter(), socket) as unknown as Socket;
}

/** Sweeps at times that the test chooses, in shares of the time for which a client may take nothing. */
function createSweeps() {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const connections = createConnections();
  const sweepAfter = (share: number) => {
    vi.advanceTimersByTime(share * DEFAULT_LIMITS.writeTimeoutMs);
    sweep(connections, DEFAULT_LIMITS);
  };
  return { connections, sweepAfter };
}

describe("sweep()", () => {
  it("moves the clock", () => {
    const connections = createConnections();
    connections.nowMs = LONG_AGO_MS;
    sweep(connections, DEFAULT_LIMITS);
    expect(connections.nowMs).toBeGreaterThan(0);
  });

  it.each([
    ["has bytes to send", { writableLength: 1 }, 1],
    ["cannot get rid of its own end", { writableEnded: true }, 1],
    ["has sent everything and waits for its handler", {}, 0],
  ])("cuts an HTTP/1 connection that %s only when nothing moves for the time allowed", (_name, state, calls) => {
    const { connections, sweepAfter } = createSweeps();
    const socket = socketWith(state);
    connections.exchanges.set(socket, { response: undefined, requests: 1, queued: 0 });
    for (const share of [0, 0.9]) sweepAfter(share);
    expect(socket.destroy).not.toHaveBeenCalled();
    sweepAfter(0.2);
    expect(socket.destroy).toHaveBeenCalledTimes(calls);
  });

  it.each([
    ["less waits", (socket: Socket) => Object.assign(socket, { writableLength: socket.writableLength - 1 })],
    ["all was taken, and as much waits again", (socket: Socket) => void socket.emit("drain")],
  ])("leaves a client alone that takes something now and then, as is seen when %s", (_name, take) => {
    const { connections, sweepAfter } = createSweeps();
    const socket = socketWith({ writableLength: 100 });
    connections.exchanges.set(socket, { response: undefined, requests: 1, queued: 0 });
    for (let round = 0; round < 20; round++) {
      sweepAfter(0.9);
      take(socket);
    }
    expect(socket.destroy).not.toHaveBeenCalled();
    for (const share of [0, 1.1]) sweepAfter(share);
    expect(socket.destroy).toHaveBeenCalledTimes(1);
  });

  it("counts anew for each answer of a connection", () => {
    const { connections, sweepAfter } = createSweeps();
    const socket = socketWith({});
    connections.exchanges.set(socket, { response: undefined, requests: 1, queued: 0 });
    for (const writableLength of [1, 0, 1, 0, 1]) {
      Object.assign(socket, { writableLength });
      sweepAfter(0.9);
    }
    expect(socket.destroy).not.toHaveBeenCalled();
  });

  it.each([
    ["lets go of a finished response", true, true, true],
    ["holds on to a response that is not finished", false, true, false],
    ["holds on to the last response of a connection, behind which nothing is begun", true, false, false],
  ])("%s", (_what, writableFinished, shouldKeepAlive, isFreed) => {
    const connections = createConnections();
    const exchange = {
      response: { writableFinished, shouldKeepAlive } as ServerResponse | undefined,
      requests: 1,
      queued: 0,
    };
    connections.exchanges.set(socketWith({}), exchange);
    sweep(connections, DEFAULT_LIMITS);
    expect(exchange.response === undefined).toBe(isFreed);
  });

  it("resets an HTTP/2 stream that takes nothing, and then cuts a connection that does not take the reset", () => {
    const { connections, sweepAfter } = createSweeps();
    const session = { destroyed: false, ping: vi.fn() } as unknown as ServerHttp2Session;
    const close = vi.fn(() => Object.assign(stream, { closed: true }));
    const stream = Object.assign(new EventEmitter(), { writableLength: 1, session, state: {}, close, closed: false });
    const socket = socketWith({});
    connections.streams.set(stream as unknown as ServerHttp2Stream, performance.now());
    connections.sessions.set(session, { socket, activeMs: performance.now(), begun: 0, queue: [] });
    for (const share of [0, 0.9]) sweepAfter(share);
    expect(close).not.toHaveBeenCalled();
    sweepAfter(0.2);
    expect(close).toHaveBeenCalledTimes(1);
    expect(socket.destroy).not.toHaveBeenCalled();
    sweepAfter(0.1);
    expect(socket.destroy).toHaveBeenCalledTimes(1);
  });

  it("pings a silent peer once per idle time, not at each sweep", () => {
    const connections = createConnections();
    const session = { destroyed: false, ping: vi.fn() } as unknown as Http2Session;
    connections.sessions.set(session, { socket: socketWith({}), activeMs: LONG_AGO_MS, begun: 0, queue: [] });
    connections.streams.set({ session } as ServerHttp2Stream, performance.now());
    sweep(connections, DEFAULT_LIMITS);
    sweep(connections, DEFAULT_LIMITS);
    expect(session.ping).toHaveBeenCalledTimes(1);
  });

  it("does not ping a destroyed session, but cuts it", () => {
    const connections = createConnections();
    const session = { destroyed: true, ping: vi.fn() } as unknown as Http2Session;
    const socket = socketWith({});
    connections.sessions.set(session, { socket, activeMs: LONG_AGO_MS, begun: 0, queue: [] });
    connections.streams.set({ session } as ServerHttp2Stream, performance.now());
    sweep(connections, DEFAULT_LIMITS);
    expect(session.ping).not.toHaveBeenCalled();
    expect(socket.destroy).toHaveBeenCalledTimes(1);
  });
});

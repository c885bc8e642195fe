import { ServerResponse } from "node:http";
import type { Http2ServerResponse, Http2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { createConnections } from "../../src/listener/connections.js";
import { DEFAULT_LIMITS } from "../../src/listener/limits.js";
import { leaveToHandler } from "../../src/listener/self-limited.js";
import { sweep } from "../../src/listener/sweep.js";

/** Longer ago than every limit. */
const LONG_AGO_MS = -10_000_000;

function socketWith(state: Partial<Socket>): Socket {
  return { writableLength: 0, writableEnded: false, destroy: vi.fn(), ...state } as unknown as Socket;
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
  ])("judges an old HTTP/1 exchange that %s", (_name, state, calls) => {
    const connections = createConnections();
    const socket = socketWith(state);
    connections.exchanges.set(socket, { response: undefined, startedMs: LONG_AGO_MS, requests: 1, queued: 0 });
    sweep(connections, DEFAULT_LIMITS);
    expect(socket.destroy).toHaveBeenCalledTimes(calls);
  });

  it.each([true, false])("holds on to a response only while it is not finished: %j", (writableFinished) => {
    const connections = createConnections();
    const exchange = {
      response: { writableFinished } as ServerResponse | undefined,
      startedMs: 0,
      requests: 1,
      queued: 0,
    };
    connections.exchanges.set(socketWith({}), exchange);
    sweep(connections, DEFAULT_LIMITS);
    expect(exchange.response === undefined).toBe(writableFinished);
  });

  it.each([
    ["of a handler that limits it itself", true, false, 0],
    ["of such a handler, once it is ended and not taken", true, true, 1],
    ["of any other handler", false, false, 1],
  ])("judges an old HTTP/2 answer %s", (_name, isMarked, writableEnded, calls) => {
    const connections = createConnections();
    const stream = { writableLength: 1, writableEnded, state: {}, close: vi.fn() } as unknown as ServerHttp2Stream;
    if (isMarked) leaveToHandler({ stream } as unknown as Http2ServerResponse);
    connections.streams.set(stream, LONG_AGO_MS);
    sweep(connections, DEFAULT_LIMITS);
    expect(stream.close).toHaveBeenCalledTimes(calls);
    expect(connections.streams.has(stream)).toBe(true);
  });

  it.each([
    ["while its handler writes", false, 0],
    ["only from when it was ended", true, 0],
  ])("counts the age of an answer that its handler limits: %s", (_name, endsBetween, calls) => {
    const connections = createConnections();
    const socket = socketWith({ writableLength: 1 });
    const response = Object.create(ServerResponse.prototype, { writableEnded: { value: false, writable: true } });
    leaveToHandler(response);
    connections.exchanges.set(socket, { response, startedMs: LONG_AGO_MS, requests: 1, queued: 0 });
    sweep(connections, DEFAULT_LIMITS);
    response.writableEnded = endsBetween;
    sweep(connections, DEFAULT_LIMITS);
    expect(socket.destroy).toHaveBeenCalledTimes(calls);
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

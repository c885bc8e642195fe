import type { ServerResponse } from "node:http";
import type { Http2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";

/** The newest request of an HTTP/1 connection; one object per connection, so that a call allocates nothing. */
export interface NewestExchange {
  response: ServerResponse | undefined;
  /** How many came on the connection so far. */
  requests: number;
  /** How many of them wait for the one in front of them to be answered. */
  queued: number;
}

/** An HTTP/2 connection below its session. */
export interface SessionPeer {
  readonly socket: Socket;
  /** When its last request came, or it was last heard of; before the first request, when the connection came. */
  activeMs: number;
  /** Requests begun in this turn of the event loop. */
  begun: number;
  /** Those that wait for another turn. */
  readonly queue: Array<() => void>;
  /** When it was last asked for a sign of life; undefined before the first time. */
  probedMs?: number;
}

/** What waits for a client to take it. */
export interface Untaken {
  /** Bytes; undefined when nothing waits, or the client has taken something since the last sweep. */
  bytes: number | undefined;
  /** Since when there are so many. */
  sinceMs: number;
}

/** What is open on one listener, each kept up to date by whoever opens it. */
export interface Connections {
  /** Every TCP connection. */
  readonly sockets: Set<Socket>;
  /** Connections that have not shown their protocol. */
  readonly waiting: Set<Socket>;
  /** HTTP/1 connections. */
  readonly exchanges: Map<Socket, NewestExchange>;
  /** HTTP/2 connections. */
  readonly sessions: Map<Http2Session, SessionPeer>;
  /** HTTP/2 requests and when they came, oldest first. */
  readonly streams: Map<ServerHttp2Stream, number>;
  /** What clients that are behind had left to take, for those whom the sweep found behind. */
  readonly untaken: WeakMap<Socket | ServerHttp2Stream, Untaken>;
  /** A clock that the sweep moves: reading it costs a call nothing, and limits are as coarse as the sweep anyway. */
  nowMs: number;
  /** Set once, when the listener begins to close: each answer is the last on its connection. */
  draining: boolean;
  /** Set once, after that: a connection that has not shown its protocol is given up. */
  refusing: boolean;
}

/** Nothing open yet. */
export function createConnections(): Connections {
  return {
    sockets: new Set(),
    waiting: new Set(),
    exchanges: new Map(),
    sessions: new Map(),
    streams: new Map(),
    untaken: new WeakMap(),
    nowMs: performance.now(),
    draining: false,
    refusing: false,
  };
}

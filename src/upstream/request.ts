import type { Readable } from "node:stream";
import type { Bytes } from "../lib/chunks.js";
import type { CallerSignal } from "../model/caller-signal.js";

/** Limits of calls to providers, with their defaults and the reason for each. Times in milliseconds. */
export const CALL_LIMITS = {
  /**
   * How long a kept-alive socket rests after an answer before it carries another call: stray answers of real servers
   * are 1 to 5 ms late. With 32 concurrent callers a call takes 45 µs of this process without a rest, 61 µs with 10 ms
   * and 66 to 73 µs with 20 ms: more sockets are in use, and their memory is not in the CPU's caches.
   */
  quietMs: 10,
  /** How long no socket to an origin is reused after a stray answer: a server that sends one will send another. */
  distrustMs: 600_000,
  /** DNS, TCP and TLS of a new socket: a healthy provider needs far less. */
  connectTimeoutMs: 5000,
  /** Resolving one name, which leaves time to connect within the connect timeout. */
  dnsTimeoutMs: 3000,
  /**
   * How long an idle socket is kept: enough for a person who reads between two calls. Shorter where the provider says
   * so, or was seen to close sockets earlier.
   */
  keepAliveTimeoutMs: 60_000,
  /** Longest body of an answer in bytes, before and after decoding; as RELAY_MAX_RESPONSE_BYTES. */
  maxResponseBytes: 10 * 1024 * 1024,
  /** Largest head of an answer in bytes, as Node.js. */
  maxHeaderBytes: 16 * 1024,
  /** Most header lines of an answer. */
  maxHeaderCount: 100,
  /** Most interim (1xx) answers to one request. */
  maxInformational: 16,
  /** Concurrent calls to one origin; more wait in a queue, in order of arrival within one application. */
  maxConcurrent: 200,
  /**
   * Calls that may wait for one origin; more are refused, so that one slow provider does not take all places of the
   * relay: together well below the default of RELAY_MAX_IN_FLIGHT.
   */
  maxWaiting: 400,
  /**
   * Longest time without a byte of a streamed answer while the relay is reading: event streams send a comment every 15
   * to 30 s, and slow models think for a minute.
   */
  streamIdleTimeoutMs: 120_000,
  /** Longest streamed answer in total: one day, since longer ones can be requested again. */
  streamTimeoutMs: 86_400_000,
  /** Idle sockets of all origins; the least recently used is closed. As RELAY_MAX_IN_FLIGHT: more cannot be in use. */
  maxKept: 1000,
  /** Origins with kept sockets; the least recently used is evicted. */
  maxPools: 1024,
};

/** The limits in use. */
export type CallLimits = Readonly<typeof CALL_LIMITS>;

/** A streamed request body. */
export interface StreamedBody {
  /** Announced length in bytes; undefined when not known beforehand. */
  readonly length: number | undefined;
  /** Bytes received so far. */
  readonly taken: number;
  /** Whether all bytes received so far are still kept, so that the body can be sent from its beginning. */
  readonly isWhole: boolean;
  /** The kept beginning of the body. */
  readonly start: Uint8Array;
  /**
   * Opens the body from its beginning, and destroys the reader opened before. Returns the bytes when all of it is here.
   * Fails with a RelayError when the body must not be sent, or when its beginning is no longer kept.
   */
  open(): Readable | Uint8Array;
  /** Pauses reading from the caller until `open()` or `release()`, so that no more of the beginning is lost. */
  hold(): void;
  /** Resumes the open reader. */
  release(): void;
}

/** One HTTP request to a provider, fully decided: it contains no unchecked text of the caller. */
export interface UpstreamRequest {
  /** `https://host[:port]`, lower-case, from the provider's own list. */
  readonly origin: string;
  /** Path and query, starting with `/`; printable ASCII without spaces. */
  readonly path: string;
  readonly method: string;
  /** Flat list name, value, name, value, …; exactly one credential; no Host, Content-Length or hop-by-hop fields. */
  readonly headers: readonly string[];
  readonly body: Uint8Array | undefined;
  /** A streamed body, instead of `body`. Only `stream()` extends the deadline while it is sent. */
  readonly streamedBody?: StreamedBody | undefined;
  /** The call's application: an origin's places are shared fairly among applications. */
  readonly applicationId: string;
  /**
   * The connection whose token the request carries; with reuse policy `connection`, sockets are not shared between two.
   */
  readonly connectionId: string;
  /** Whether addresses in private networks may be dialled for this provider. */
  readonly allowPrivateNetwork: boolean;
}

/** The head of a provider's answer. */
export interface UpstreamHead {
  readonly statusCode: number;
  /**
   * Field lines as received: name, value, name, value, … (latin1 text). Content-Encoding and Content-Length still
   * describe the body as it was sent.
   */
  readonly rawHeaders: readonly string[];
}

/** A provider's answer: decoded body, raw field lines. */
export interface UpstreamAnswer extends UpstreamHead {
  /** Whether the body has no length and ends with the connection (RFC 9112 section 8). */
  readonly isPossiblyTruncated?: boolean;
  /** Body after transfer and content decoding. */
  readonly body: Bytes;
}

/** A provider's answer, streamed. */
export interface UpstreamStream extends Omit<UpstreamAnswer, "body"> {
  /**
   * Body after transfer and content decoding, with backpressure to the provider's socket. Can be read once. Throws
   * RelayError PROVIDER_RESPONSE_INVALID for a truncated answer, PROVIDER_TIMEOUT for a stalled one, RESPONSE_TOO_LARGE
   * for a decompression bomb, or the signal's reason.
   */
  readonly body: AsyncIterableIterator<Buffer>;
  /**
   * The whole body, if all of it has arrived, it needs no decoding and `body` was not read yet; undefined otherwise.
   */
  whole(): Buffer | undefined;
  /** Ends the deadline of the call: from now on only the limits of a stream apply. */
  begin(): void;
  /** Abandons the rest of the answer. Must always be called in the end, even when nothing is left. */
  close(): void;
}

/** One call's share of the memory budget. */
export interface MemoryShare {
  /** Charges bytes that are held from now on. False, with nothing charged, when there is no room for them. */
  reserve(bytes: number): boolean;
  /** Returns bytes that are not held after all. */
  giveBack(bytes: number): void;
}

/** When and by whom a request is ended, and how much memory it may hold. */
export interface UpstreamLimits {
  /** Charged as the answer arrives; without it, only the size limit of one answer applies. */
  readonly memory?: MemoryShare | undefined;
  /** When the call must have ended, in milliseconds of `performance.now()`. */
  readonly deadline: number;
  /** Aborts when the caller disconnects. */
  readonly signal: CallerSignal | undefined;
  /**
   * Called just before the first byte is written. If it returns false, nothing is written and the request fails with
   * PROVIDER_TIMEOUT. Without it, requests are always written.
   */
  readonly mayBegin?: (() => boolean) | undefined;
}

/** What is recorded about a request while it runs. */
export interface RequestProgress {
  /** Milliseconds in the queue of its origin; added to the previous value. */
  queueMs: number | undefined;
  /** Whether it was written, at least in part; undefined or false when nothing was sent. */
  wasSent?: boolean;
  /** Head of the answer, even if its body was lost or cannot be read. */
  head?: UpstreamHead | undefined;
}

/** The HTTP client for providers; the only code that connects to them. */
export interface Upstream {
  /**
   * Sends one request and reads the whole answer. Never follows a redirect, never retries.
   *
   * Rejects with RelayError PROVIDER_UNREACHABLE, PROVIDER_TIMEOUT, PROVIDER_RESPONSE_INVALID, RESPONSE_TOO_LARGE
   * or OVERLOADED (no memory left for the answer), or INTERNAL_ERROR (the request cannot be written as HTTP);
   * rejects with the signal's reason when the caller disconnects.
   */
  send(request: UpstreamRequest, limits: UpstreamLimits, progress?: RequestProgress): Promise<UpstreamAnswer>;
  /**
   * Sends one request and reads the head of the answer. Rejects as `send()` does, except with RESPONSE_TOO_LARGE: only
   * about 64 KiB of the answer are buffered at a time, however large it is.
   */
  stream(request: UpstreamRequest, limits: UpstreamLimits, progress?: RequestProgress): Promise<UpstreamStream>;
  close(): Promise<void>;
}

import type { Readable } from "node:stream";
import type { Bytes } from "../lib/chunks.js";
import type { CallerSignal } from "../model/caller-signal.js";

/** Calls to one origin, of a process: a slow provider has well below RELAY_MAX_IN_FLIGHT of them. */
export const ORIGIN_LIMITS = { maxConcurrent: 200, maxWaiting: 400 } as const;

/** A request body that is sent as it comes. */
export interface StreamedBody {
  /** Octets that are announced; undefined: not known beforehand. */
  readonly length: number | undefined;
  /** Octets that have come. */
  readonly taken: number;
  /** Whether everything that has come is still here, so that it can be sent from its beginning. */
  readonly isWhole: boolean;
  /** The beginning of it, as far as it is kept. */
  readonly start: Uint8Array;
  /**
   * The body from its beginning, its bytes where all of it is here; ends what was opened before. Fails with the RelayError of
   * a body that must not be sent, or of one whose beginning is not here any more.
   */
  open(): Readable | Uint8Array;
  /** Takes no more from the caller until it is opened again or `release()` is called, so that it stays as whole as it is. */
  hold(): void;
  /** What is open goes on. */
  release(): void;
}

/** One HTTP request to a provider, fully decided: nothing in it is caller text that was not judged. */
export interface UpstreamRequest {
  /** `https://host[:port]`, lower-case, from the provider's own list. */
  readonly origin: string;
  /** Path and query, starting with `/`; printable ASCII without spaces. */
  readonly path: string;
  readonly method: string;
  /** Flat list name, value, name, value, …; exactly one credential; no Host, Content-Length or hop-by-hop fields. */
  readonly headers: readonly string[];
  readonly body: Uint8Array | undefined;
  /** A body that is sent as it comes, instead. Only `stream()` gives it the time that it takes. */
  readonly streamedBody?: StreamedBody | undefined;
  /** Whose call it is: the places at an origin are shared out among applications. */
  readonly applicationId: string;
  /** Whose token the request carries; sockets are kept apart by it with reuse policy `connection`. */
  readonly connectionId: string;
  /** Whether addresses in private networks may be dialled for this provider. */
  readonly allowPrivateNetwork: boolean;
}

/** The head of a provider's answer. */
export interface UpstreamHead {
  readonly statusCode: number;
  /**
   * Field lines as received: name, value, name, value, … (latin1 text). Content-Encoding and Content-Length still
   * speak of the body as it was sent.
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

/** A provider's answer that is handed on as it comes. */
export interface UpstreamStream extends Omit<UpstreamAnswer, "body"> {
  /**
   * Body after transfer and content decoding, to be read once; the provider's socket is read no faster. Throws the
   * RelayError of an answer that ends before its end, PROVIDER_TIMEOUT of one that stands still, RESPONSE_TOO_LARGE of
   * one that grows beyond reason when it is decoded, or the signal's reason.
   */
  readonly body: AsyncIterableIterator<Buffer>;
  /** The whole body, where all of it has come with the head and `body` was not asked for; undefined otherwise. */
  whole(): Buffer | undefined;
  /** The deadline of the call has been kept: from here on only the limits of a stream count. */
  begin(): void;
  /** Gives up what is left of it; to be called in the end, also when nothing is left. */
  close(): void;
}

/** A share of the memory that all calls have together. */
export interface MemoryShare {
  /** Counts bytes that are held from now on. False, with nothing counted, when there is no room for them. */
  reserve(bytes: number): boolean;
  /** Takes bytes back that turned out not to be held. */
  giveBack(bytes: number): void;
}

/** How long and by whom a request may be ended, and what it may hold. */
export interface UpstreamLimits {
  /** Counts the answer as it arrives; without it, only the limit of one answer counts. */
  readonly memory?: MemoryShare | undefined;
  /** When the call must have ended, in milliseconds of `performance.now()`. */
  readonly deadline: number;
  /** Aborts when the caller is gone. */
  readonly signal: CallerSignal | undefined;
  /**
   * Asked in the moment before the first byte is written; false: nothing is, and it fails with PROVIDER_TIMEOUT. By
   * default it may.
   */
  readonly mayBegin?: (() => boolean) | undefined;
}

/** What is learned of a request on its way. */
export interface RequestProgress {
  /** Milliseconds that it waited for its turn among the calls to its origin; added to what is there. */
  queueMs: number | undefined;
  /** Whether it was written, at least in part; undefined or false when nothing left the relay. */
  wasSent?: boolean;
  /** The head of its answer, also of one whose body is lost or cannot be read. */
  head?: UpstreamHead | undefined;
}

/** The only way out to providers. */
export interface Upstream {
  /**
   * Sends one request and reads the whole answer. Never follows a redirect, never retries.
   *
   * Rejects with RelayError PROVIDER_UNREACHABLE, PROVIDER_TIMEOUT, PROVIDER_RESPONSE_INVALID, RESPONSE_TOO_LARGE
   * or OVERLOADED (no memory left for the answer), or INTERNAL_ERROR (the request cannot be written as HTTP);
   * rejects with the signal's reason when the caller is gone.
   */
  send(request: UpstreamRequest, limits: UpstreamLimits, progress?: RequestProgress): Promise<UpstreamAnswer>;
  /**
   * Sends one request and reads the head of the answer. Rejects as `send()` does, but knows no RESPONSE_TOO_LARGE:
   * however large the answer is, only some 64 KiB of it are here at a time.
   */
  stream(request: UpstreamRequest, limits: UpstreamLimits, progress?: RequestProgress): Promise<UpstreamStream>;
  close(): Promise<void>;
}

import type { Dispatcher } from "undici";
import type { CallerListener, CallerSignal } from "../model/caller-signal.js";
import { RelayError } from "../model/errors.js";
import { parseContentCodings } from "./decode.js";
import { deadlineError, type Failure, isSilentEnd, type Progress, relayError, relayErrorFrom } from "./failure.js";
import type { Party, Pool, PooledCall } from "./pool.js";
import type { PooledSocket } from "./pooled-socket.js";
import type { MemoryShare, RequestProgress, UpstreamLimits, UpstreamRequest } from "./request.js";

/** The head of an answer, read once: its field lines, and what this folder itself must know of them. */
export interface AnswerFields {
  /** Name, value, name, value, … as received; latin1 text. */
  readonly lines: readonly string[];
  /** Octets that are announced; 0 when nothing or nonsense is announced (the parser judges that). */
  readonly contentLength: number;
  /** RFC 9110 section 8.4: codings in the order applied, repeated lines joined; undefined without any. */
  readonly contentEncoding: string | undefined;
  /** RFC 9112 section 6.1; undefined without any. */
  readonly transferEncoding: string | undefined;
  /** Whether a body ends with its length or its last chunk, and not with the connection (RFC 9112 section 6.3). */
  readonly isDelimited: boolean;
  /** Whether the provider closes the connection after it (RFC 9112 section 9.6). */
  readonly isLast: boolean;
}

/** Reads the parser's raw field lines. Pure; names are compared only where their length fits, since most do not. */
export function fieldsFromRaw(raw: readonly Buffer[]): AnswerFields {
  const lines = raw.map((bytes) => bytes.toString("latin1"));
  let contentLength: number | undefined;
  let contentEncoding: string | undefined;
  let transferEncoding: string | undefined;
  let isLast = false;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = lines[at] as string;
    const value = lines[at + 1] as string;
    if (is(name, "content-length")) contentLength = Number(value) || 0;
    else if (is(name, "content-encoding")) contentEncoding = joined(contentEncoding, value);
    else if (is(name, "transfer-encoding")) transferEncoding = joined(transferEncoding, value);
    else if (is(name, "connection")) isLast ||= is(value.trim(), "close");
  }
  const isDelimited = contentLength !== undefined || transferEncoding !== undefined;
  return { lines, contentLength: contentLength ?? 0, contentEncoding, transferEncoding, isDelimited, isLast };
}

/** The first value of a field, empty without one. `name` is lower-case. */
export function headerValue(lines: readonly string[], name: string): string {
  for (let at = 0; at + 1 < lines.length; at += 2) {
    if (is(lines[at] as string, name)) return lines[at + 1] as string;
  }
  return "";
}

function is(name: string, expected: string): boolean {
  return name.length === expected.length && name.toLowerCase() === expected;
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}

/** How long an answer may take that is handed on as it comes, in milliseconds. */
interface StreamLimits {
  /** Without a byte from the provider while one is wanted. */
  readonly streamIdleTimeoutMs: number;
  /** All in all. */
  readonly streamTimeoutMs: number;
}

/** What an answer may be. */
export interface AnswerLimits extends StreamLimits {
  /** Body octets, before and after decoding. */
  readonly maxResponseBytes: number;
  /** Field lines of one head. */
  readonly maxHeaderCount: number;
  /** Interim (1xx) answers before the final one. */
  readonly maxInformational: number;
}

/** Methods whose effect is the same when they are carried out twice (RFC 9110 section 9.2.2). */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

/** Timers of Node.js cannot be longer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * One request, from the queue to the head of its answer; what becomes of the body is a subclass's. It is also the
 * handler that undici calls, in the form that hands over raw field lines without a wrapper, and the listener of the
 * caller's signal. A class, since it is made for every call: one object, no closures.
 */
export abstract class Exchange<Answer> implements Dispatcher.DispatchHandler, CallerListener, PooledCall {
  readonly share: string;
  abstract readonly isStream: boolean;
  /** The pool's, while the call waits for its turn. */
  previous: PooledCall | undefined;
  next: PooledCall | undefined;
  party: Party | undefined;
  socket: PooledSocket | undefined;
  wasReadded = false;
  protected readonly request: UpstreamRequest;
  protected readonly pool: Pool;
  protected readonly answerLimits: AnswerLimits;
  protected memory: MemoryShare | undefined;
  protected progress: Progress = "waiting";
  #resolve: ((answer: Answer) => void) | undefined;
  #reject: ((reason: unknown) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #signal: CallerSignal | undefined;
  #learned: RequestProgress | undefined;
  /** Since when it waits for its turn, in milliseconds of `performance.now()`. */
  #waitsSince = 0;
  #isOver = false;
  #interim = 0;
  #abort: (() => void) | undefined;
  #mayBegin: (() => boolean) | undefined;

  constructor(request: UpstreamRequest, share: string, pool: Pool, answerLimits: AnswerLimits) {
    this.request = request;
    this.share = share;
    this.pool = pool;
    this.answerLimits = answerLimits;
  }

  /** Queues the request; settles as `Upstream` says. */
  start({ deadline, signal, mayBegin, memory }: UpstreamLimits, learned?: RequestProgress): Promise<Answer> {
    const now = performance.now();
    const remainingMs = deadline - now;
    this.#learned = learned;
    this.memory = memory;
    this.#mayBegin = mayBegin;
    this.#waitsSince = now;
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    if (remainingMs <= 0) return Promise.reject(deadlineError("waiting"));
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.setDeadline(remainingMs);
      this.#signal = signal;
      signal?.addEventListener("abort", this);
      if (!this.pool.add(this)) this.failAs(this.isStream ? "streams" : "crowded");
    });
  }

  get applicationId(): string {
    return this.request.applicationId;
  }

  send(socket: PooledSocket): void {
    this.#noteWaited();
    this.progress = "dialling";
    const { path, method, headers, body, streamedBody } = this.request;
    const length = streamedBody?.length;
    const fields = length === undefined ? headers : [...headers, "content-length", String(length)];
    // Member by member: nothing else may become an option of undici (threats N18).
    const sent = body ?? streamedBody?.open() ?? null;
    const options = { path, method, headers: fields as string[], body: sent, blocking: false };
    socket.send(options, this);
  }

  /** The caller's signal. */
  handleEvent(): void {
    this.fail(this.#signal?.reason);
  }

  /** The deadline has passed. */
  expire(): void {
    this.fail(deadlineError(this.progress));
  }

  /** undici is about to write the request. It must not do so again for a request it wrote once. */
  onConnect(abort: (error?: Error) => void): void {
    if (this.progress !== "dialling" || this.isOver) {
      abort();
      return;
    }
    if (this.#mayBegin?.() === false) {
      this.fail(deadlineError(this.progress));
      abort();
      return;
    }
    this.#abort = abort;
    this.socket?.expectAnswer();
    this.#noteSent();
  }

  onResponseStarted(): void {
    this.progress = "answering";
  }

  onHeaders(statusCode: number, raw: readonly Buffer[]): boolean {
    if (this.isOver) return true;
    if (statusCode < 200) return this.#onInterim();
    if (statusCode > 599) return this.failAs("protocol");
    if (raw.length > 2 * this.answerLimits.maxHeaderCount) return this.failAs("fields");
    const fields = fieldsFromRaw(raw);
    if (this.#learned !== undefined) this.#learned.head = { statusCode, rawHeaders: fields.lines };
    return statusCode === 408 && fields.isLast
      ? this.#onTimeoutNotice(statusCode, fields)
      : this.onHead(statusCode, fields);
  }

  abstract onData(chunk: Buffer): boolean;

  onComplete(): void {
    if (this.isOver) return;
    // RFC 9112 section 8: an answer that ends with the connection is whole only if the connection ended without error.
    if (this.socket?.isBroken === true) this.failAs("cutShort");
    else this.finish(true);
  }

  onError(error: unknown): void {
    if (this.isOver) return;
    if (this.#mayRepeat(error)) {
      this.wasReadded = true;
      this.progress = "waiting";
      this.#waitsSince = performance.now();
      this.pool.readd(this);
    } else {
      this.fail(relayErrorFrom(error, this.progress));
    }
  }

  /** The final head; gives back what `onHeaders()` is to give back. */
  protected abstract onHead(statusCode: number, fields: AnswerFields): boolean;

  /**
   * The last byte is here: the socket is free.
   *
   * @param isSocketClean whether it may carry another call.
   */
  protected abstract finish(isSocketClean: boolean): true;

  /**
   * Whether a body ends with the connection, so that nothing tells its end from one that was lost. A coding tells it, once
   * there is a byte of it.
   */
  protected isOpenEnded(statusCode: number, { isDelimited, contentEncoding }: AnswerFields, isEmpty: boolean): boolean {
    if (isDelimited || this.request.method === "HEAD" || statusCode === 204 || statusCode === 304) return false;
    return isEmpty || contentEncoding === undefined || parseContentCodings(contentEncoding)?.length === 0;
  }

  /** Whether undici has nothing more to say to it, or nobody would listen. */
  protected get isOver(): boolean {
    return this.#isOver;
  }

  protected failAs(failure: Failure): true {
    this.fail(relayError(failure));
    return true;
  }

  /** Ends the call, unless it has ended. */
  protected fail(reason: unknown): void {
    if (this.#isOver) return;
    const reject = this.#reject;
    if (this.progress === "waiting") this.#noteWaited();
    this.end();
    // A call that was not written yet leaves its socket as it was.
    this.pool.remove(this, this.progress === "waiting");
    reject?.(reason);
  }

  /** Settles the promise. */
  protected succeed(answer: Answer): void {
    const resolve = this.#resolve;
    this.#resolve = undefined;
    this.#reject = undefined;
    resolve?.(answer);
  }

  /** Another deadline instead of the one that was given. */
  protected setDeadline(remainingMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(onDeadline, Math.min(remainingMs, MAX_TIMER_MS), this);
  }

  /** The time until the deadline begins anew. */
  protected renewDeadline(): void {
    this.#timer?.refresh();
  }

  /** From here on nothing counts. */
  protected end(): void {
    this.#isOver = true;
    this.#resolve = undefined;
    this.#reject = undefined;
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this);
  }

  /**
   * A kept socket that ends under a call was closed by the provider before the request came, in nearly all cases. Once a
   * byte of the request is written, that is not certain, so only what may be done twice is sent again, once (RFC 9110
   * section 9.2.2, RFC 9112 section 9.3.1).
   */
  #mayRepeat(error: unknown): boolean {
    if (this.socket?.isUsed !== true || this.wasReadded) return false;
    // The body failed, not the socket; or the beginning of it is not here any more.
    if (error instanceof RelayError || this.request.streamedBody?.isWhole === false) return false;
    if (this.progress === "dialling") return true;
    return this.progress === "sent" && IDEMPOTENT.has(this.request.method) && isSilentEnd(error);
  }

  /** On a kept socket it is about the time in which no request came: the provider has not seen this one. */
  #onTimeoutNotice(statusCode: number, fields: AnswerFields): boolean {
    if (this.socket?.isUsed !== true) return this.onHead(statusCode, fields);
    this.progress = "sent";
    this.#abort?.();
    return true;
  }

  #noteWaited(): void {
    if (this.#learned === undefined) return;
    this.#learned.queueMs = (this.#learned.queueMs ?? 0) + performance.now() - this.#waitsSince;
  }

  #noteSent(): void {
    this.progress = "sent";
    if (this.#learned !== undefined) this.#learned.wasSent = true;
  }

  #onInterim(): boolean {
    this.#interim += 1;
    return this.#interim <= this.answerLimits.maxInformational || this.failAs("interim");
  }
}

function onDeadline(exchange: { expire(): void }): void {
  exchange.expire();
}

/** Other transfer codings would have to be decoded (RFC 9112 section 7); nobody sends them. */
export function isChunkedOrNone(transferEncoding: string | undefined): boolean {
  return transferEncoding === undefined || transferEncoding.trim().toLowerCase() === "chunked";
}

import type { Dispatcher } from "undici";
import type { CallerListener, CallerSignal } from "../model/caller-signal.js";
import { RelayError } from "../model/errors.js";
import { parseContentCodings } from "./decode.js";
import { deadlineError, type Failure, isSilentEnd, type Progress, relayError, relayErrorFrom } from "./failure.js";
import type { Party, Pool, PooledCall } from "./pool.js";
import type { PooledSocket } from "./pooled-socket.js";
import type { CallLimits, MemoryShare, RequestProgress, UpstreamLimits, UpstreamRequest } from "./request.js";

/** The head of an answer: its field lines, and the values that this folder needs. */
export interface AnswerFields {
  /** Name, value, name, value, … as received; latin1 text. */
  readonly lines: readonly string[];
  /** Announced length in bytes; 0 when missing or invalid (the parser rejects that). */
  readonly contentLength: number;
  /**
   * Content-Encoding: codings in the order applied, repeated lines joined (RFC 9110 section 8.4); undefined if none.
   */
  readonly contentEncoding: string | undefined;
  /** Transfer-Encoding, repeated lines joined (RFC 9112 section 6.1); undefined if none. */
  readonly transferEncoding: string | undefined;
  /** Whether the body ends by its length or last chunk, not with the connection (RFC 9112 section 6.3). */
  readonly isDelimited: boolean;
  /** Whether the provider closes the connection after this answer (RFC 9112 section 9.6). */
  readonly isLast: boolean;
}

/** Reads the parser's raw field lines. Pure. Names are compared only if their length matches, since most do not. */
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
    else if (is(name, "connection")) isLast ||= CLOSE.test(value);
  }
  const isDelimited = contentLength !== undefined || transferEncoding !== undefined;
  return { lines, contentLength: contentLength ?? 0, contentEncoding, transferEncoding, isDelimited, isLast };
}

/** Connection is a list (RFC 9110 section 7.6.1). */
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;

/** The first value of a field; empty if it is missing. `name` is lower-case. */
export function headerValue(lines: readonly string[], name: string): string {
  for (let at = 0; at + 1 < lines.length; at += 2) {
    if (is(lines[at] as string, name)) return lines[at + 1] as string;
  }
  return "";
}

/** All values of a list field, repeated lines joined (RFC 9110 section 5.3); empty if it is missing. */
export function listValue(lines: readonly string[], name: string): string {
  let all: string | undefined;
  for (let at = 0; at + 1 < lines.length; at += 2) {
    if (is(lines[at] as string, name)) all = joined(all, lines[at + 1] as string);
  }
  return all ?? "";
}

function is(name: string, expected: string): boolean {
  return name.length === expected.length && name.toLowerCase() === expected;
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}

/** Methods that have the same effect when repeated (RFC 9110 section 9.2.2). */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

/** Longest timer of Node.js. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * One request, from the queue to the head of its answer; subclasses handle the body. It is also undici's dispatch
 * handler, in the older form that receives raw field lines without a wrapper, and the listener of the caller's signal.
 * A class, since every call has one: one object, no closures.
 */
export abstract class Exchange<Answer> implements Dispatcher.DispatchHandler, CallerListener, PooledCall {
  readonly share: string;
  abstract readonly isStream: boolean;
  /** Links of the pool's queue. */
  previous: PooledCall | undefined;
  next: PooledCall | undefined;
  party: Party | undefined;
  socket: PooledSocket | undefined;
  wasReadded = false;
  protected readonly request: UpstreamRequest;
  protected readonly pool: Pool;
  protected readonly answerLimits: CallLimits;
  protected memory: MemoryShare | undefined;
  protected progress: Progress = "waiting";
  /** Whether the call has ended, so that further events are ignored. */
  protected isOver = false;
  #resolve: ((answer: Answer) => void) | undefined;
  #reject: ((reason: unknown) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #signal: CallerSignal | undefined;
  #learned: RequestProgress | undefined;
  /** When it entered the queue, in milliseconds of `performance.now()`. */
  #waitsSince = 0;
  #interim = 0;
  #abort: (() => void) | undefined;
  #mayBegin: (() => boolean) | undefined;

  constructor(request: UpstreamRequest, share: string, pool: Pool, answerLimits: CallLimits) {
    this.request = request;
    this.share = share;
    this.pool = pool;
    this.answerLimits = answerLimits;
  }

  /** Queues the request; settles as described at {@link Upstream}. */
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
    // Member by member, so that nothing else can become an undici option (threats N18).
    const sent = body ?? streamedBody?.open() ?? null;
    const options = { path, method, headers: fields as string[], body: sent, blocking: false };
    socket.send(options, this);
  }

  /** Called when the caller's signal aborts. */
  handleEvent(): void {
    this.fail(this.#signal?.reason);
  }

  /** Called when the deadline passes. */
  expire(): void {
    this.fail(deadlineError(this.progress));
  }

  /** Called when undici is about to write the request. Aborts if undici tries to write the same request twice. */
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
    // A 408 on a kept-alive socket is about its idle time before: the provider has not seen this request.
    if (statusCode === 408 && fields.isLast && this.socket?.isUsed === true) {
      this.progress = "sent";
      this.#abort?.();
      return true;
    }
    const hasBody = this.request.method !== "HEAD" && statusCode !== 304;
    if (hasBody && !isChunkedOrNone(fields.transferEncoding)) return this.failAs("coding");
    this.onHead(statusCode, fields, hasBody);
    // The Content-Length of a 304 may be that of the omitted body, which undici takes for a mismatch.
    return statusCode === 304 && fields.contentLength > 0 ? this.finish(false) : true;
  }

  abstract onData(chunk: Buffer): boolean;

  onComplete(): void {
    if (this.isOver) return;
    // RFC 9112 section 8: an answer that ends with the connection is complete only if that closed without an error.
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

  /** Called with the final head. */
  protected abstract onHead(statusCode: number, fields: AnswerFields, hasBody: boolean): void;

  /**
   * Called after the last byte: the socket is free.
   *
   * @param isSocketClean whether the socket may carry another call.
   */
  protected abstract finish(isSocketClean: boolean): true;

  /**
   * Whether a body ends with the connection, so that truncation cannot be detected. A content coding marks its own end,
   * unless the body is empty.
   */
  protected isOpenEnded(statusCode: number, { isDelimited, contentEncoding }: AnswerFields, isEmpty: boolean): boolean {
    if (isDelimited || this.request.method === "HEAD" || statusCode === 204 || statusCode === 304) return false;
    return isEmpty || contentEncoding === undefined || parseContentCodings(contentEncoding)?.length === 0;
  }

  protected failAs(failure: Failure): true {
    this.fail(relayError(failure));
    return true;
  }

  /** Ends the call with a failure, unless it has ended already. */
  protected fail(reason: unknown): void {
    if (this.isOver) return;
    const reject = this.#reject;
    if (this.progress === "waiting") this.#noteWaited();
    this.end();
    // A call that still waits has not used a socket.
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

  /** Replaces the deadline. */
  protected setDeadline(remainingMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(onDeadline, Math.min(remainingMs, MAX_TIMER_MS), this);
  }

  /** Restarts the timer of the deadline. */
  protected renewDeadline(): void {
    this.#timer?.refresh();
  }

  /** Marks the call as ended: further events are ignored. */
  protected end(): void {
    this.isOver = true;
    this.#resolve = undefined;
    this.#reject = undefined;
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this);
  }

  /**
   * Whether to send the request again after a kept-alive socket closed during the call. Nearly always the provider had
   * closed it before the request arrived. Once a byte of the request is written that is not certain, so only idempotent
   * methods are sent again, once (RFC 9110 section 9.2.2, RFC 9112 section 9.3.1).
   */
  #mayRepeat(error: unknown): boolean {
    if (this.socket?.isUsed !== true || this.wasReadded) return false;
    // The body failed rather than the socket, or its beginning is no longer kept.
    if (error instanceof RelayError || this.request.streamedBody?.isWhole === false) return false;
    if (this.progress === "dialling") return true;
    return this.progress === "sent" && IDEMPOTENT.has(this.request.method) && isSilentEnd(error);
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

/**
 * Whether the relay can read a transfer coding. Nobody sends others, which would need decoding (RFC 9112 section 7).
 */
function isChunkedOrNone(transferEncoding: string | undefined): boolean {
  return transferEncoding === undefined || transferEncoding.trim().toLowerCase() === "chunked";
}

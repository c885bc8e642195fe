import type { Dispatcher } from "undici";
import type { CallerListener, CallerSignal } from "../caller-signal.js";
import { type Chunks, createChunks } from "../chunks.js";
import type { Links } from "../linked-list.js";
import { decodeBody } from "./decode.js";
import { deadlineError, type Failure, type Progress, relayError, relayErrorFrom } from "./failure.js";
import { type AnswerFields, fieldsFromRaw } from "./fields.js";
import type { Lane } from "./lane.js";
import type { Pool } from "./pool.js";
import type { MemoryShare, UpstreamAnswer, UpstreamLimits, UpstreamRequest } from "./request.js";

/** What an answer may be. */
export interface AnswerLimits {
  /** Body octets, before and after decoding. */
  readonly maxResponseBytes: number;
  /** Field lines of one head. */
  readonly maxHeaderCount: number;
  /** Interim (1xx) answers before the final one. */
  readonly maxInformational: number;
}

/** A body is held as it came and once more in the answer made of it. */
const COPIES = 2;
/** Deflate makes at most 1,032 bytes of one; whatever makes more is decoded under the limit all the same. */
const MAX_EXPANSION = 1100;
/** Timers of Node.js cannot be longer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * One request and its answer, from the queue to the last byte. It is also the handler that undici calls, in the form
 * that hands over raw field lines without a wrapper, and the listener of the caller's signal. A class, since it is made
 * for every call: one object, no closures.
 */
export class Exchange implements Dispatcher.DispatchHandler, CallerListener, Links<Exchange> {
  /** Calls with the same value may follow each other on one socket. */
  readonly share: string;
  /** The pool's, while the call waits for its turn. */
  previous: Exchange | undefined;
  next: Exchange | undefined;
  /** Set by the pool while it carries this call. */
  lane: Lane | undefined;
  readonly #request: UpstreamRequest;
  readonly #pool: Pool;
  readonly #answerLimits: AnswerLimits;
  #resolve: ((answer: UpstreamAnswer) => void) | undefined;
  #reject: ((reason: unknown) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #signal: CallerSignal | undefined;
  #memory: MemoryShare | undefined;
  #progress: Progress = "waiting";
  #wasReadded = false;
  #interim = 0;
  #statusCode = 0;
  #fields: AnswerFields | undefined;
  #size = 0;
  readonly #chunks: Chunks = createChunks();

  constructor(request: UpstreamRequest, share: string, pool: Pool, answerLimits: AnswerLimits) {
    this.#request = request;
    this.share = share;
    this.#pool = pool;
    this.#answerLimits = answerLimits;
  }

  /** Queues the request; settles as `Upstream.send` says. */
  start({ deadline, signal, memory }: UpstreamLimits): Promise<UpstreamAnswer> {
    const remainingMs = deadline - performance.now();
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    if (remainingMs <= 0) return Promise.reject(deadlineError("waiting"));
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#timer = setTimeout(onDeadline, Math.min(remainingMs, MAX_TIMER_MS), this);
      this.#signal = signal;
      this.#memory = memory;
      signal?.addEventListener("abort", this);
      if (!this.#pool.add(this)) this.#failAs("crowded");
    });
  }

  /** Called by the pool when the call's turn has come. */
  send(lane: Lane): void {
    this.#progress = "dialling";
    const { path, method, headers, body } = this.#request;
    // Member by member: nothing else may become an option of undici (threats N18).
    const options = { path, method, headers: headers as string[], body: body ?? null, blocking: false };
    lane.send(options, this);
  }

  /** The caller's signal. */
  handleEvent(): void {
    this.#fail(this.#signal?.reason);
  }

  /** The deadline has passed. */
  expire(): void {
    this.#fail(deadlineError(this.#progress));
  }

  /** undici is about to write the request. It must not do so again for a request it wrote once. */
  onConnect(abort: (error?: Error) => void): void {
    if (this.#progress !== "dialling" || this.#reject === undefined) abort();
    else this.#progress = "sent";
  }

  onResponseStarted(): void {
    this.#progress = "answering";
  }

  onHeaders(statusCode: number, raw: readonly Buffer[]): boolean {
    if (this.#reject === undefined) return true;
    if (statusCode < 200) return this.#onInterim();
    if (raw.length > 2 * this.#answerLimits.maxHeaderCount) return this.#failAs("fields");
    const fields = fieldsFromRaw(raw);
    this.#statusCode = statusCode;
    this.#fields = fields;
    // A 304 has no body, but may tell the length of the one it stands for, which undici takes for a mismatch.
    if (statusCode === 304 && fields.contentLength > 0) return this.#finish(false);
    if (this.#request.method === "HEAD") return true;
    if (fields.contentLength > this.#answerLimits.maxResponseBytes) return this.#failAs("tooLarge");
    return isChunkedOrNone(fields.transferEncoding) || this.#failAs("coding");
  }

  onData(chunk: Buffer): boolean {
    if (this.#reject === undefined) return true;
    this.#size += chunk.length;
    if (this.#size > this.#answerLimits.maxResponseBytes) return this.#failAs("tooLarge");
    if (this.#memory?.reserve(COPIES * chunk.length) === false) return this.#failAs("noMemory");
    this.#chunks.push(chunk);
    return true;
  }

  onComplete(): void {
    if (this.#reject === undefined) return;
    // RFC 9112 section 8: an answer that ends with the connection is whole only if the connection ended without error.
    if (this.lane?.isBroken === true) this.#failAs("cutShort");
    else this.#finish(true);
  }

  onError(error: unknown): void {
    if (this.#reject === undefined) return;
    if (this.#progress === "dialling" && this.lane?.isUsed === true && !this.#wasReadded) {
      // An idle socket ended before a byte was written to it. This is not a retry.
      this.#wasReadded = true;
      this.#progress = "waiting";
      this.#pool.readd(this);
    } else {
      this.#fail(relayErrorFrom(error, this.#progress));
    }
  }

  #onInterim(): boolean {
    this.#interim += 1;
    return this.#interim <= this.#answerLimits.maxInformational || this.#failAs("interim");
  }

  /** The last byte is here: the socket is free, also while the body is being decoded. */
  #finish(isSocketClean: boolean): true {
    this.#pool.remove(this, isSocketClean);
    const body = this.#chunks.concat();
    const encoding = this.#fields?.contentEncoding;
    if (encoding === undefined || body.length === 0) this.#succeed(body);
    else this.#decode(body, encoding);
    return true;
  }

  #decode(body: Buffer, encoding: string): void {
    const { maxResponseBytes } = this.#answerLimits;
    const most = COPIES * Math.min(maxResponseBytes, body.length * MAX_EXPANSION);
    if (this.#memory?.reserve(most) === false) {
      this.#failAs("noMemory");
      return;
    }
    decodeBody(body, encoding, maxResponseBytes).then(
      (decoded) => {
        this.#memory?.giveBack(most - COPIES * decoded.length);
        this.#succeed(decoded);
      },
      (error: unknown) => this.#fail(error),
    );
  }

  #succeed(body: Buffer): void {
    const resolve = this.#resolve;
    this.#disarm();
    resolve?.({ statusCode: this.#statusCode, rawHeaders: this.#fields?.lines ?? [], body });
  }

  #failAs(failure: Failure): true {
    this.#fail(relayError(failure));
    return true;
  }

  #fail(reason: unknown): void {
    const reject = this.#reject;
    if (reject === undefined) return;
    this.#disarm();
    // A call that was not written yet leaves its socket as it was.
    this.#pool.remove(this, this.#progress === "waiting");
    reject(reason);
  }

  #disarm(): void {
    this.#resolve = undefined;
    this.#reject = undefined;
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this);
  }
}

function onDeadline(exchange: Exchange): void {
  exchange.expire();
}

/** Other transfer codings would have to be decoded (RFC 9112 section 7); nobody sends them. */
function isChunkedOrNone(transferEncoding: string | undefined): boolean {
  return transferEncoding === undefined || transferEncoding.trim().toLowerCase() === "chunked";
}

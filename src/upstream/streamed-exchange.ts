import { Readable } from "node:stream";
import { type ContentCoding, decodeStream, parseContentCodings } from "./decode.js";
import { type AnswerFields, Exchange, isChunkedOrNone } from "./exchange.js";
import { relayError } from "./failure.js";
import type { UpstreamStream } from "./request.js";

/** Bytes of an answer that wait here to be taken; then the provider's socket is not read. */
const WAITING_BYTES = 64 * 1024;

const NO_CODINGS: readonly ContentCoding[] = [];

/**
 * A request whose answer is handed over with its head: it is that answer itself. One object, no closures: V8 makes the
 * accessor of an object literal among the old objects, and with it all that the accessor can reach, the whole request.
 */
export class StreamedExchange extends Exchange<UpstreamStream> implements UpstreamStream {
  readonly isStream = true;
  statusCode = 0;
  rawHeaders: readonly string[] = [];
  isPossiblyTruncated = false;
  /** Of a head that is not handed over yet. */
  #fields: AnswerFields | undefined;
  /** Undefined where there is one that is not known here. */
  #codings: readonly ContentCoding[] | undefined;
  /** What has come before anybody reads it: most answers are small, and whole by then. */
  readonly #early: Buffer[] = [];
  #earlyBytes = 0;
  /** Made for who reads on. */
  #body: Readable | undefined;
  #pieces: AsyncIterableIterator<Buffer> | undefined;
  #isComplete = false;
  #failure: Error | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  /** Whether the provider is waited for, and not whoever reads the body. */
  #isWanted = true;
  readonly #startedAt = performance.now();

  get body(): AsyncIterableIterator<Buffer> {
    this.#pieces ??= this.#open(this.#codings ?? NO_CODINGS);
    return this.#pieces;
  }

  whole(): Buffer | undefined {
    // Without a byte it does not matter which coding it has.
    const isPlain = this.#codings === undefined || this.#codings.length === 0;
    if (!this.#isComplete || this.#body !== undefined || !isPlain) return undefined;
    const [first, ...more] = this.#early;
    return first !== undefined && more.length === 0 ? first : Buffer.concat(this.#early);
  }

  begin(): void {
    if (this.isOver) return;
    this.setDeadline(this.answerLimits.streamTimeoutMs);
    this.#idleTimer = setTimeout(onIdleTimer, this.answerLimits.streamIdleTimeoutMs, this);
  }

  close(): void {
    if (this.#body === undefined) this.fail(undefined);
    else this.#body.destroy();
  }

  protected onHead(statusCode: number, fields: AnswerFields): boolean {
    const hasBody = this.request.method !== "HEAD" && statusCode !== 304;
    if (hasBody && !isChunkedOrNone(fields.transferEncoding)) return this.failAs("coding");
    const { contentEncoding } = fields;
    const codings = contentEncoding === undefined ? NO_CODINGS : parseContentCodings(contentEncoding);
    this.statusCode = statusCode;
    this.rawHeaders = fields.lines;
    this.#fields = fields;
    this.#codings = codings;
    // Whether there is anything to decode, or an end that is told by a coding, is known with the first byte.
    if (codings?.length === 0 || (codings !== undefined && fields.isDelimited)) this.#handOver(false);
    // A 304 has no body, but may tell the length of the one it stands for, which undici takes for a mismatch.
    return statusCode === 304 && fields.contentLength > 0 ? this.finish(false) : true;
  }

  onData(chunk: Buffer): boolean {
    if (this.isOver) return true;
    if (this.#codings === undefined) return this.failAs("coding");
    this.#handOver(false);
    this.#idleTimer?.refresh();
    this.#isWanted = this.#add(chunk);
    if (!this.#isWanted) this.socket?.hold();
    return true;
  }

  /**
   * A piece of the request's body was taken. As long as it goes out, the deadline is for the next piece of it, and then for
   * the head of the answer; an answer that has begun is not silent while the provider still takes the body.
   */
  onBodySent(): void {
    if (this.isOver || this.request.streamedBody === undefined) return;
    if (this.#idleTimer !== undefined) this.#idleTimer.refresh();
    else if (performance.now() - this.#startedAt < this.answerLimits.streamTimeoutMs) this.renewDeadline();
  }

  /** Nothing came for too long. */
  onIdle(): void {
    if (this.#isWanted) this.failAs("silent");
  }

  protected finish(isSocketClean: boolean): true {
    this.#handOver(true);
    this.end();
    clearTimeout(this.#idleTimer);
    this.socket?.unhold();
    this.pool.remove(this, isSocketClean);
    this.#isComplete = true;
    this.#body?.push(null);
    return true;
  }

  protected override fail(reason: unknown): void {
    if (this.isOver) return;
    super.fail(reason);
    clearTimeout(this.#idleTimer);
    this.#failure = reason instanceof Error ? reason : relayError("cutShort", reason);
    this.#body?.destroy(this.#failure);
  }

  /** Hands over the head, unless that was done. */
  #handOver(isEmpty: boolean): void {
    const fields = this.#fields;
    if (fields === undefined) return;
    this.#fields = undefined;
    this.isPossiblyTruncated = this.isOpenEnded(this.statusCode, fields, isEmpty);
    this.succeed(this);
  }

  /** Whether more is wanted. */
  #add(chunk: Buffer): boolean {
    if (this.#body !== undefined) return this.#body.push(chunk);
    this.#early.push(chunk);
    this.#earlyBytes += chunk.length;
    return this.#earlyBytes < WAITING_BYTES;
  }

  #open(codings: readonly ContentCoding[]): AsyncIterableIterator<Buffer> {
    const body = this.#createBody();
    for (const chunk of this.#early) body.push(chunk);
    if (this.#isComplete) body.push(null);
    if (this.#failure !== undefined) body.destroy(this.#failure);
    this.#body = body;
    return decodeStream(body, codings, this.answerLimits.maxResponseBytes, this.memory);
  }

  #createBody(): Readable {
    const body = new Readable({
      highWaterMark: WAITING_BYTES,
      read: () => this.#onWanted(),
      destroy: (error, done) => {
        this.fail(error);
        done(error);
      },
    });
    // Whoever reads it learns of a failure there; nobody may be reading it yet.
    body.on("error", () => {});
    return body;
  }

  /** Never called while undici hands bytes over: the body is read by those who wait for it. */
  #onWanted(): void {
    if (this.isOver || this.#isWanted) return;
    this.#isWanted = true;
    this.#idleTimer?.refresh();
    this.socket?.readOn();
  }
}

function onIdleTimer(exchange: StreamedExchange): void {
  exchange.onIdle();
}

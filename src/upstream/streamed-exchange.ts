import { Readable } from "node:stream";
import { type ContentCoding, decodeStream, parseContentCodings } from "./decode.js";
import { type AnswerFields, Exchange } from "./exchange.js";
import { relayError } from "./failure.js";
import type { UpstreamStream } from "./request.js";

/** Bytes of an answer that are buffered before the relay stops reading the provider's socket. */
const WAITING_BYTES = 64 * 1024;

const NO_CODINGS: readonly ContentCoding[] = [];

/**
 * A request whose answer is passed on as soon as its head arrives; the object is also that answer. One object, no
 * closures: V8 allocates the accessors of an object literal in the old generation, which would promote all that they
 * reach, the whole request.
 */
export class StreamedExchange extends Exchange<UpstreamStream> implements UpstreamStream {
  readonly isStream = true;
  statusCode = 0;
  rawHeaders: readonly string[] = [];
  isPossiblyTruncated = false;
  /** Fields of a head that is not passed on yet. */
  #fields: AnswerFields | undefined;
  /** Undefined when one of them is unknown. */
  #codings: readonly ContentCoding[] | undefined;
  /** Bytes that arrived before anybody reads: most answers are small and complete by then. */
  readonly #early: Buffer[] = [];
  #earlyBytes = 0;
  /** Created when `body` is first read. */
  #body: Readable | undefined;
  #pieces: AsyncIterableIterator<Buffer> | undefined;
  #isComplete = false;
  #failure: Error | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  /** Whether the relay waits for the provider, rather than for the reader of the body. */
  #isWanted = true;
  readonly #startedAt = performance.now();

  get body(): AsyncIterableIterator<Buffer> {
    this.#pieces ??= this.#open(this.#codings ?? NO_CODINGS);
    return this.#pieces;
  }

  whole(): Buffer | undefined {
    // An unknown coding gets here only with an empty body, where it does not matter.
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

  protected onHead(statusCode: number, fields: AnswerFields): void {
    const { contentEncoding } = fields;
    const codings = contentEncoding === undefined ? NO_CODINGS : parseContentCodings(contentEncoding);
    this.statusCode = statusCode;
    this.rawHeaders = fields.lines;
    this.#fields = fields;
    this.#codings = codings;
    // Otherwise wait for the first byte: only then is it known whether there is anything to decode, or a coding that
    // marks the end.
    if (codings?.length === 0 || (codings !== undefined && fields.isDelimited)) this.#handOver(false);
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
   * Called when a piece of the request's body was sent. Each piece restarts the timer of the deadline, for the next
   * piece and then for the head of the answer, until the total limit of a stream. Once the answer is being read, each
   * piece restarts its idle timer instead.
   */
  onBodySent(): void {
    if (this.isOver || this.request.streamedBody === undefined) return;
    if (this.#idleTimer !== undefined) this.#idleTimer.refresh();
    else if (performance.now() - this.#startedAt < this.answerLimits.streamTimeoutMs) this.renewDeadline();
  }

  /** Called when no byte arrived for too long. */
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

  /** Passes the head on, once. */
  #handOver(isEmpty: boolean): void {
    const fields = this.#fields;
    if (fields === undefined) return;
    this.#fields = undefined;
    this.isPossiblyTruncated = this.isOpenEnded(this.statusCode, fields, isEmpty);
    this.succeed(this);
  }

  /** Buffers a chunk; false when the buffer is full. */
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
    // Readers get the error from their iterator; without this listener it would be uncaught when nobody reads yet.
    body.on("error", () => {});
    return body;
  }

  /** Never called from undici's handlers: only a waiting reader reads the body. */
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

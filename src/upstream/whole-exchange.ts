import { type Bytes, bytesOf, type Chunks, createChunks } from "../lib/chunks.js";
import { type ContentCoding, decodeBody, parseContentCodings } from "./decode.js";
import { Exchange, isChunkedOrNone } from "./exchange.js";
import type { AnswerFields } from "./fields.js";
import type { MemoryShare, RequestProgress, UpstreamAnswer, UpstreamLimits } from "./request.js";

/** A body is held as it came and once more in the answer made of it. */
const COPIES = 2;
/** Deflate makes at most 1,032 bytes of one; whatever makes more is decoded under the limit all the same. */
const MAX_EXPANSION = 1100;

/** A request whose answer is read to its end before it is handed over. */
export class WholeExchange extends Exchange<UpstreamAnswer> {
  readonly isStream = false;
  #memory: MemoryShare | undefined;
  #statusCode = 0;
  #fields: AnswerFields | undefined;
  #size = 0;
  readonly #chunks: Chunks = createChunks();

  override start(limits: UpstreamLimits, progress?: RequestProgress): Promise<UpstreamAnswer> {
    this.#memory = limits.memory;
    return super.start(limits, progress);
  }

  protected onHead(statusCode: number, fields: AnswerFields): boolean {
    this.#statusCode = statusCode;
    this.#fields = fields;
    // A 304 has no body, but may tell the length of the one it stands for, which undici takes for a mismatch.
    if (statusCode === 304 && fields.contentLength > 0) return this.finish(false);
    if (this.request.method === "HEAD") return true;
    if (fields.contentLength > this.answerLimits.maxResponseBytes) return this.failAs("tooLarge");
    return isChunkedOrNone(fields.transferEncoding) || this.failAs("coding");
  }

  onData(chunk: Buffer): boolean {
    if (this.isOver) return true;
    this.#size += chunk.length;
    if (this.#size > this.answerLimits.maxResponseBytes) return this.failAs("tooLarge");
    if (this.#memory?.reserve(COPIES * chunk.length) === false) return this.failAs("noMemory");
    this.#chunks.push(chunk);
    return true;
  }

  /** The socket is free also while the body is being decoded. */
  protected finish(isSocketClean: boolean): true {
    this.pool.remove(this, isSocketClean);
    const encoding = this.#fields?.contentEncoding;
    const codings = encoding === undefined || this.#chunks.length === 0 ? [] : parseContentCodings(encoding);
    if (codings === undefined) return this.failAs("coding");
    if (codings.length === 0) this.#give(this.#chunks);
    else this.#decode(this.#chunks.concat(), codings);
    return true;
  }

  #decode(body: Buffer, codings: readonly ContentCoding[]): void {
    const { maxResponseBytes } = this.answerLimits;
    const most = COPIES * Math.min(maxResponseBytes, body.length * MAX_EXPANSION ** codings.length);
    if (this.#memory?.reserve(most) === false) {
      this.failAs("noMemory");
      return;
    }
    decodeBody(body, codings, maxResponseBytes).then(
      (decoded) => {
        this.#memory?.giveBack(most - COPIES * decoded.length);
        this.#give(bytesOf(decoded));
      },
      (error: unknown) => this.fail(error),
    );
  }

  #give(body: Bytes): void {
    const [statusCode, fields] = [this.#statusCode, this.#fields];
    const isPossiblyTruncated = fields !== undefined && this.isOpenEnded(statusCode, fields);
    this.succeed({ statusCode, rawHeaders: fields?.lines ?? [], isPossiblyTruncated, body });
    this.end();
  }
}

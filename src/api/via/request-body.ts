import { Readable } from "node:stream";
import { type HttpRequest, type HttpResponse, tooLarge } from "../../http/exchange.js";
import { allowLongUpload } from "../../http/sweep.js";
import { formatError, RelayError } from "../../model/errors.js";
import type { Redactor } from "../../redaction/redact.js";
import type { StreamRedactor } from "../../redaction/redact-stream.js";
import type { StreamedBody } from "../../upstream/request.js";

/** Limits of a body, and a callback for its size. */
interface RequestBodyOptions {
  readonly maxBytes: number;
  /** Finds the caller's proof, which must not be sent on. Called once the call is allowed. */
  readonly proofs: () => Redactor;
  /** Called with the length of each piece received. */
  readonly onBytes: (bytes: number) => void;
}

/** How much of a body is kept, so that it can be sent again. */
const MAX_KEPT_BYTES = 64 * 1024;

/**
 * The body of a request, to be streamed on. Undefined for a request without one.
 *
 * Throws RelayError REQUEST_TOO_LARGE when the declared length is over the limit.
 */
export function requestBodyOf(
  request: HttpRequest,
  response: HttpResponse,
  options: RequestBodyOptions,
): StreamedBody | undefined {
  const { "content-length": declared } = request.headers;
  const length = declared === undefined ? undefined : Number(declared);
  if (length === 0 || !hasBody(request)) return undefined;
  if (length !== undefined && length > options.maxBytes) throw tooLarge(options.maxBytes);
  return new RequestBody(request, response, length, options);
}

/** Whether a request announces a body, which may be empty (RFC 9112 section 6.3, RFC 9113 section 8.1). */
function hasBody(request: HttpRequest): boolean {
  if ("stream" in request) return !request.stream.endAfterHeaders;
  return request.headers["content-length"] !== undefined || request.headers["transfer-encoding"] !== undefined;
}

/** Reads a request with backpressure from the reader of its body. Reads nothing before it is opened. */
class RequestBody implements StreamedBody {
  readonly length: number | undefined;
  taken = 0;
  isWhole = true;
  readonly #request: HttpRequest;
  readonly #response: HttpResponse;
  readonly #options: RequestBodyOptions;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #isBegun = false;
  #isEnded = false;
  #isHeld = false;
  #failure: RelayError | undefined;
  #reader: Readable | undefined;

  constructor(request: HttpRequest, response: HttpResponse, length: number | undefined, options: RequestBodyOptions) {
    this.length = length;
    this.#request = request;
    this.#response = response;
    this.#options = options;
    // It may wait for a turn or a refresh before it is read; the deadline of the call limits that.
    allowLongUpload(response);
  }

  get start(): Uint8Array {
    const [first, ...more] = this.#kept;
    return first !== undefined && more.length === 0 ? first : Buffer.concat(this.#kept);
  }

  open(): Readable | Uint8Array {
    this.#reader?.destroy();
    this.#isHeld = false;
    if (!this.isWhole) this.#fail(beginningLost());
    if (!this.#isBegun) this.#takeWhole();
    if (this.#isEnded && this.#failure === undefined && this.#keptBytes === this.length) return this.start;
    const again = [...this.#kept];
    const reader = new Readable({
      highWaterMark: MAX_KEPT_BYTES,
      read: () => this.#feed(reader, again.shift()),
      destroy: (error, done) => {
        if (this.#reader === reader) this.#leave();
        done(error);
      },
    });
    // The sender is notified of a failure, but may have dropped the reader already.
    reader.on("error", () => {});
    this.#reader = reader;
    return reader;
  }

  /** Most bodies are small and fully received already: they need no stream. */
  #takeWhole(): void {
    const { length } = this;
    const isHere = length !== undefined && length <= MAX_KEPT_BYTES && this.#request.readableLength === length;
    // With a length: newer versions of Node.js otherwise return only the first chunk.
    const body: Buffer | null = isHere ? this.#request.read(length) : null;
    if (body === null) return;
    this.#isBegun = true;
    this.#isEnded = true;
    this.taken = body.length;
    this.#keptBytes = body.length;
    this.#options.onBytes(body.length);
    if (this.#options.proofs().bytes(body) === body) this.#kept = [body];
    else this.#fail(proofInBody());
  }

  hold(): void {
    this.#isHeld = true;
    this.#request.pause();
  }

  release(): void {
    this.#isHeld = false;
    if (this.#reader !== undefined && this.#failure === undefined) this.#request.resume();
  }

  #feed(reader: Readable, kept: Buffer | undefined): void {
    if (this.#failure !== undefined) reader.destroy(this.#failure);
    else if (kept !== undefined) reader.push(kept);
    else if (this.#isEnded) reader.push(null);
    else if (!this.#isBegun) this.#begin();
    else if (!this.#isHeld) this.#request.resume();
  }

  /**
   * Starts reading, once the provider's socket is ready. Sends 100 Continue to a client that waits for it, except with
   * HTTP/1.0 (RFC 9110 section 10.1.1).
   */
  #begin(): void {
    this.#isBegun = true;
    const proofs = this.#options.proofs().stream();
    const { headers, httpVersion } = this.#request;
    const isWaiting = httpVersion !== "1.0" && /^100-continue$/i.test(String(headers.expect ?? ""));
    if (isWaiting && !this.#response.headersSent) this.#response.writeContinue();
    const request: Readable = this.#request;
    request.on("data", (piece: Buffer) => this.#onPiece(piece, proofs));
    request.on("end", () => this.#onEnd(proofs));
    // Without `end` before it, the caller has disconnected.
    request.on("close", () => this.#onClose());
    request.on("error", () => this.#onClose());
    // A reader that was destroyed before this has paused it.
    request.resume();
  }

  #leave(): void {
    this.#reader = undefined;
    this.#request.pause();
  }

  #onPiece(piece: Buffer, proofs: StreamRedactor): void {
    this.taken += piece.length;
    this.#options.onBytes(piece.length);
    if (this.taken > this.#options.maxBytes) this.#fail(tooLarge(this.#options.maxBytes));
    else this.#give(proofs.push(piece), proofs.hasFound());
  }

  #onEnd(proofs: StreamRedactor): void {
    if (this.#failure !== undefined) return;
    this.#give(proofs.end(), proofs.hasFound());
    if (this.#failure !== undefined) return;
    this.#isEnded = true;
    this.#reader?.push(null);
  }

  #onClose(): void {
    if (!this.#isEnded) this.#fail(formatError("The request ended before its body was complete. Send it again."));
  }

  #give(pieces: readonly Buffer[], holdsProof: boolean): void {
    if (holdsProof) {
      this.#fail(proofInBody());
      return;
    }
    for (const piece of pieces) {
      this.#keep(piece);
      // Without a reader only bytes already in transit arrive here; they are kept or lost.
      if (this.#reader?.push(piece) === false) this.#request.pause();
    }
  }

  /** Keeps a copy: a piece of a few bytes would keep its whole buffer alive. */
  #keep(piece: Buffer): void {
    if (!this.isWhole) return;
    this.isWhole = this.#keptBytes + piece.length <= MAX_KEPT_BYTES;
    if (!this.isWhole) return;
    this.#keptBytes += piece.length;
    this.#kept.push(Buffer.from(piece));
  }

  #fail(failure: RelayError): void {
    if (this.#failure !== undefined) return;
    this.#failure = failure;
    this.#request.pause();
    this.#reader?.destroy(failure);
  }
}

/** The body has to be sent again, and was too long to keep. */
function beginningLost(): RelayError {
  return new RelayError(
    "PROVIDER_UNREACHABLE",
    "The request must be sent to the provider again, but the relay no longer has the beginning of its body. Send the request again.",
  );
}

/** The caller's proof is in the body as well: the rest of the body is not sent. */
function proofInBody(): RelayError {
  return new RelayError(
    "CALLER_NOT_ALLOWED",
    "The caller's credential is also in the body, where the provider would see it. Send it in one place only.",
  );
}

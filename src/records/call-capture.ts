import { createRedactor, type Redactor } from "../redaction/redact.js";
import type { Secret } from "../tokens/secret.js";
import type { CaptureContent, CapturedRequest, CapturedResponse, HeaderPairs } from "./capture-content.js";
import { captureBody } from "./captured-body.js";
import { credentialValues } from "./credential-values.js";
import { maskField, maskParameters } from "./mask-text.js";
import { MASKED } from "./sensitive-name.js";

/** What is to be captured of a request, whether it is described or sent. */
export interface RequestToCapture {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderPairs;
  readonly body: Uint8Array | undefined;
}

/** What is to be captured of an answer; tokens were taken out of it. */
export interface ResponseToCapture {
  readonly statusCode: number;
  readonly headers: HeaderPairs;
  /** Empty where the body was handed on as it came. */
  readonly body: Uint8Array;
}

/** How a call ended. */
export interface EndToCapture {
  readonly response: ResponseToCapture | undefined;
  readonly message: string | undefined;
}

/** Of a body that is handed on as it comes. */
const MAX_CHUNK_BYTES = 16 * 1024;

/** Collects one call that is being captured; it becomes content when the call has ended. */
export class CallCapture {
  /** Which capture of the application it belongs to: the one that ends then. */
  readonly captureUntil: number;
  #request: RequestToCapture;
  #isSent = false;
  readonly #secrets: Secret[] = [];
  #credentialField: string | undefined;
  readonly #chunks: Uint8Array[] = [];
  #chunkBytes = 0;

  /** @param described the request as its caller wrote it. */
  constructor(captureUntil: number, described: RequestToCapture) {
    this.captureUntil = captureUntil;
    this.#request = described;
  }

  /**
   * The request is sent, with these secrets in it; the last one counts, the secrets of all.
   *
   * @param credentialField the name of the header that holds the token; undefined when none does.
   */
  noteSent(request: RequestToCapture, secrets: readonly Secret[], credentialField: string | undefined): void {
    this.#request = request;
    this.#isSent = true;
    this.#secrets.push(...secrets);
    this.#credentialField = credentialField;
  }

  /** Bytes are handed to the caller as they came, but for the tokens in them. */
  noteChunk(bytes: Uint8Array): void {
    const room = MAX_CHUNK_BYTES - this.#chunkBytes;
    this.#chunkBytes += bytes.length;
    if (room > 0) this.#chunks.push(Uint8Array.from(bytes.subarray(0, room)));
  }

  /** Everything, redacted and bounded. */
  content({ response, message }: EndToCapture): CaptureContent {
    const secrets = this.#secrets.map((secret) => secret.reveal());
    const redactor = createRedactor([...secrets, ...credentialValues(this.#request.headers, this.#request.url)]);
    return {
      request: this.#requestWith(redactor),
      response: response && this.#responseWith(response, redactor),
      message,
    };
  }

  #requestWith(redactor: Redactor): CapturedRequest {
    const { method, url, headers, body } = this.#request;
    const masked = headers.map(([name, value]) => {
      const isCredential = name.toLowerCase() === this.#credentialField;
      return [name, isCredential ? MASKED : maskField(name, redactor.text(value))] as const;
    });
    return {
      isSent: this.#isSent,
      method,
      url: maskUrl(redactor.text(url)),
      headers: masked,
      body: body && captured(body, body.length, headers, redactor),
    };
  }

  #responseWith({ statusCode, headers, body }: ResponseToCapture, redactor: Redactor): CapturedResponse {
    const beginning = body.length > 0 ? body : Buffer.concat(this.#chunks);
    const bytes = Math.max(body.length, this.#chunkBytes);
    return {
      statusCode,
      headers: headers.map(([name, value]) => [name, maskField(name, redactor.text(value))]),
      body: captured(beginning, bytes, headers, redactor),
    };
  }
}

function captured(body: Uint8Array, bytes: number, headers: HeaderPairs, redactor: Redactor) {
  const contentType = headers.find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "";
  return captureBody(body, { bytes, contentType, redactor: redactor.stream() });
}

/** User and password of a url that was refused, and parameters. */
function maskUrl(url: string): string {
  const [place = "", ...query] = url.split("?");
  const plain = place.replace(/\/\/[^/@]*@/, `//${MASKED}@`);
  return query.length === 0 ? plain : `${plain}?${maskParameters(query.join("?"))}`;
}

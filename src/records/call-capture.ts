import { MAX_SECRET_LENGTH } from "../providers/connection-value.js";
import type { HeaderPairs } from "../providers/provider.js";
import { createRedactor, type Redactor } from "../redaction/redact.js";
import type { StreamRedactor } from "../redaction/redact-stream.js";
import type { Secret } from "../sealing/seal.js";
import { maskField, maskText } from "./mask-text.js";
import { isSensitiveField, MASKED } from "./sensitive-name.js";

/** Bytes kept of a body: enough to see what is wrong with it. */
const MAX_BYTES = 4096;
/**
 * Bytes scanned for credentials: more than are kept, so that a credential cut off at the end of the text is masked too.
 */
const LOOK_AT_BYTES = 16 * 1024;

/**
 * The beginning of a body, with the secrets that were sent and the values of sensitive names masked. Pure.
 * Undefined for an empty body.
 *
 * @param body the whole body, or at least its first 16 KiB.
 * @param bytes length of the whole body.
 */
function captureBody(
  body: Uint8Array,
  { bytes, redactor }: { bytes: number; redactor: StreamRedactor },
): CapturedBody | undefined {
  if (bytes === 0) return undefined;
  const isWhole = body.length === bytes && bytes <= LOOK_AT_BYTES;
  const redacted = [...redactor.push(body.subarray(0, LOOK_AT_BYTES))];
  // Where the body is cut, a possible beginning of a secret stays in the redactor.
  if (isWhole) redacted.push(...redactor.end());
  const text = textFrom(Buffer.concat(redacted), isWhole);
  if (text === undefined) return { bytes, text, isCut: true };
  const masked = maskText(text);
  const kept = cut(masked);
  return { bytes, text: kept, isCut: !isWhole || kept.length < masked.length };
}

/** Undefined when the bytes are not UTF-8 text. */
function textFrom(bytes: Uint8Array, isWhole: boolean): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !isWhole });
    return text.includes("\0") ? undefined : text;
  } catch {
    // Not UTF-8: sensitive names cannot be found in it, so none of it is kept.
    return undefined;
  }
}

/** Cuts to {@link MAX_BYTES} without splitting a character. */
function cut(text: string): string {
  const bytes = Buffer.from(text);
  return bytes.length <= MAX_BYTES ? text : new TextDecoder().decode(bytes.subarray(0, MAX_BYTES), { stream: true });
}

/**
 * Values of a request's sensitive header fields and query parameters. They are masked in the answer too, which may echo
 * them under another name. Pure.
 */
function credentialValues(headers: ReadonlyArray<readonly [name: string, value: string]>, url: string): string[] {
  const fields = headers
    .filter(([name]) => isSensitiveField(name))
    // The scheme before a credential is not part of it (RFC 9110 section 11.4).
    .map(([, value]) => value.replace(/^[A-Za-z]+ +/, ""));
  const mark = url.indexOf("?");
  const query = mark === -1 ? "" : url.slice(mark + 1);
  const parameters = query.split("&").flatMap(valuesOf);
  return [...fields, ...parameters].filter(({ length }) => length <= MAX_SECRET_LENGTH).slice(0, MAX_CREDENTIALS);
}

/**
 * The caller chooses their number and length, and all are searched for in one pass: a thousand would block the event
 * loop for a second. No honest call has this many; any beyond it are masked by name only.
 */
const MAX_CREDENTIALS = 32;

/** The value of a sensitive parameter, decoded and as written. */
function valuesOf(parameter: string): string[] {
  const [[name, value] = ["", ""]] = new URLSearchParams(parameter);
  return isSensitiveField(name) ? [value, parameter.slice(parameter.indexOf("=") + 1)] : [];
}

/** A request to capture, as described by the caller or as sent. */
interface RequestToCapture {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderPairs;
  readonly body: Uint8Array | undefined;
}

/** An answer to capture, already redacted. */
export interface ResponseToCapture {
  readonly statusCode: number;
  readonly headers: HeaderPairs;
  /** Empty for a streamed body. */
  readonly body: Uint8Array;
}

/** How a call ended. */
interface EndToCapture {
  readonly response: ResponseToCapture | undefined;
  readonly message: string | undefined;
}

/** Collects what is captured of one call. Call {@link content} when the call has ended. */
export class CallCapture {
  /** Identifies the application's capture by its end time. */
  readonly captureUntil: number;
  #request: RequestToCapture;
  #isSent = false;
  readonly #secrets: Secret[] = [];
  #credentialFields: readonly string[] = [];
  readonly #chunks: Uint8Array[] = [];
  #chunkBytes = 0;

  /** @param described the request as the caller wrote it. */
  constructor(captureUntil: number, described: RequestToCapture) {
    this.captureUntil = captureUntil;
    this.#request = described;
  }

  /**
   * Records a request as it is sent. Only the last one is shown; the secrets of every attempt are masked.
   *
   * @param credentialFields names of the headers that hold the secrets, lower-case.
   */
  noteSent(request: RequestToCapture, secrets: readonly Secret[], credentialFields: readonly string[]): void {
    this.#request = request;
    this.#isSent = true;
    this.#secrets.push(...secrets);
    this.#credentialFields = credentialFields;
  }

  /** Records redacted bytes of a streamed body as they are passed to the caller. */
  noteChunk(bytes: Uint8Array): void {
    const room = LOOK_AT_BYTES - this.#chunkBytes;
    this.#chunkBytes += bytes.length;
    if (room > 0) this.#chunks.push(Uint8Array.from(bytes.subarray(0, room)));
  }

  /** What was collected, redacted and bounded. */
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
      const isCredential = this.#credentialFields.includes(name.toLowerCase());
      return [name, isCredential ? MASKED : maskField(name, redactor.text(value))] as const;
    });
    return {
      isSent: this.#isSent,
      method,
      url: maskText(redactor.text(url)),
      headers: masked,
      body: body && captureBody(body, { bytes: body.length, redactor: redactor.stream() }),
    };
  }

  #responseWith({ statusCode, headers, body }: ResponseToCapture, redactor: Redactor): CapturedResponse {
    const beginning = body.length > 0 ? body : Buffer.concat(this.#chunks);
    const bytes = Math.max(body.length, this.#chunkBytes);
    return {
      statusCode,
      headers: headers.map(([name, value]) => [name, maskField(name, redactor.text(value))]),
      body: captureBody(beginning, { bytes, redactor: redactor.stream() }),
    };
  }
}

/** Headers and bodies of one call, redacted and bounded. */
export interface CaptureContent {
  /** As sent to the provider, or as the caller described it if it was never sent. */
  readonly request: CapturedRequest;
  /** As passed to the caller; undefined when the provider did not answer. */
  readonly response: CapturedResponse | undefined;
  /** The error message the caller received. */
  readonly message: string | undefined;
}

/** The request of a captured call. */
interface CapturedRequest extends Omit<RequestToCapture, "body"> {
  readonly isSent: boolean;
  readonly body: CapturedBody | undefined;
}

/** The provider's answer of a captured call. */
interface CapturedResponse extends Omit<ResponseToCapture, "body"> {
  readonly body: CapturedBody | undefined;
}

/** The beginning of a body. */
export interface CapturedBody {
  /** Length of the whole body, as far as it is known. */
  readonly bytes: number;
  /** Undefined when the body is not text. */
  readonly text: string | undefined;
  /** Whether the body is longer than the text. */
  readonly isCut: boolean;
}

/** Decides which calls are captured. */
export interface Capturing {
  /**
   * Starts to capture a call. Undefined when the application's capture has ended or this process has already captured
   * {@link MAX_CAPTURED_CALLS} calls for it.
   */
  begin(
    application: { readonly id: string; readonly captureUntil: number },
    described: () => RequestToCapture,
  ): CallCapture | undefined;
}

/**
 * Most calls in one capture: enough to find the one in question, few enough to store in the same database as the
 * tokens.
 */
export const MAX_CAPTURED_CALLS = 100;

/** @param now milliseconds since the epoch. */
export function createCapturing(now: () => number): Capturing {
  const counts = new Map<string, { until: number; calls: number }>();
  return {
    begin({ id, captureUntil }, described) {
      if (captureUntil <= now()) {
        counts.delete(id);
        return undefined;
      }
      let count = counts.get(id);
      if (count?.until !== captureUntil) {
        count = { until: captureUntil, calls: 0 };
        counts.set(id, count);
      }
      if (count.calls >= MAX_CAPTURED_CALLS) return undefined;
      count.calls += 1;
      return new CallCapture(captureUntil, described());
    },
  };
}

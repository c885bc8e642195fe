import { createRedactor, type Redactor } from "../redaction/redact.js";
import type { StreamRedactor } from "../redaction/redact-stream.js";
import type { Secret } from "../sealing/seal.js";
import { maskField, maskText } from "./mask-text.js";
import { isSensitiveField, MASKED } from "./sensitive-name.js";

/** What is kept of a body: enough to see what is wrong with it. */
const MAX_BYTES = 4096;
/** What is looked at: a credential that begins within the text and ends beyond it is masked, too. */
const LOOK_AT_BYTES = 16 * 1024;

/**
 * The beginning of a body, without the secrets that were sent and without what its names call credentials. Pure.
 * Undefined for an empty one.
 *
 * @param body all of it, or at least its first 16 KiB.
 * @param bytes of the whole.
 */
function captureBody(
  body: Uint8Array,
  { bytes, redactor }: { bytes: number; redactor: StreamRedactor },
): CapturedBody | undefined {
  if (bytes === 0) return undefined;
  const isWhole = body.length === bytes && bytes <= LOOK_AT_BYTES;
  const redacted = [...redactor.push(body.subarray(0, LOOK_AT_BYTES))];
  // At a cut, what could be the beginning of a secret stays in the redactor.
  if (isWhole) redacted.push(...redactor.end());
  const text = textFrom(Buffer.concat(redacted), isWhole);
  if (text === undefined) return { bytes, text, isCut: true };
  const masked = maskText(text);
  const kept = cut(masked);
  return { bytes, text: kept, isCut: !isWhole || kept.length < masked.length };
}

/** Undefined for what is no UTF-8 text. */
function textFrom(bytes: Uint8Array, isWhole: boolean): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !isWhole });
    return text.includes("\0") ? undefined : text;
  } catch {
    // Not UTF-8: names cannot be found in it, so nothing of it is kept.
    return undefined;
  }
}

/** Between two characters. */
function cut(text: string): string {
  const bytes = Buffer.from(text);
  return bytes.length <= MAX_BYTES ? text : new TextDecoder().decode(bytes.subarray(0, MAX_BYTES), { stream: true });
}

/**
 * The credentials that a request holds by the names of its header fields and parameters: an answer that echoes them
 * under another name must not show them either. Pure.
 */
function credentialValues(headers: ReadonlyArray<readonly [name: string, value: string]>, url: string): string[] {
  const fields = headers
    .filter(([name]) => isSensitiveField(name))
    // The scheme before a credential (RFC 9110 section 11.4) is no part of it.
    .map(([, value]) => value.replace(/^[A-Za-z]+ +/, ""));
  const mark = url.indexOf("?");
  const query = mark === -1 ? "" : url.slice(mark + 1);
  const parameters = query.split("&").flatMap(valuesOf);
  return [...fields, ...parameters].filter(({ length }) => length <= MAX_CREDENTIAL_LENGTH).slice(0, MAX_CREDENTIALS);
}

/**
 * A caller chooses how many there are, and how long, and all of them are searched for at once: a thousand would hold up
 * everybody else for a second. No honest call has so many; the others are masked by their names alone.
 */
const MAX_CREDENTIALS = 32;
/** As long as a token may be. */
const MAX_CREDENTIAL_LENGTH = 16_384;

/** As it is written, in whatever way that is, and as it is meant. */
function valuesOf(parameter: string): string[] {
  const [[name, value] = ["", ""]] = new URLSearchParams(parameter);
  return isSensitiveField(name) ? [value, parameter.slice(parameter.indexOf("=") + 1)] : [];
}

/** What is to be captured of a request, whether it is described or sent. */
interface RequestToCapture {
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
interface EndToCapture {
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
  #credentialFields: readonly string[] = [];
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
   * @param credentialFields names of the headers that hold them, lower-case.
   */
  noteSent(request: RequestToCapture, secrets: readonly Secret[], credentialFields: readonly string[]): void {
    this.#request = request;
    this.#isSent = true;
    this.#secrets.push(...secrets);
    this.#credentialFields = credentialFields;
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
  /** As it was sent to the provider; as the caller described it when it never was. */
  readonly request: CapturedRequest;
  /** As it was handed to the caller; undefined when the provider did not answer. */
  readonly response: CapturedResponse | undefined;
  /** What the caller was told of a failure. */
  readonly message: string | undefined;
}

/** The request of a captured call. */
interface CapturedRequest {
  /** Whether it was sent. */
  readonly isSent: boolean;
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderPairs;
  readonly body: CapturedBody | undefined;
}

/** The provider's answer of a captured call. */
interface CapturedResponse {
  readonly statusCode: number;
  readonly headers: HeaderPairs;
  readonly body: CapturedBody | undefined;
}

/** Names and values in order. */
export type HeaderPairs = ReadonlyArray<readonly [name: string, value: string]>;

/** The beginning of a body. */
export interface CapturedBody {
  /** Of the whole body, as far as it is known. */
  readonly bytes: number;
  /** Undefined when it is no text. */
  readonly text: string | undefined;
  /** Whether there is more than the text shows. */
  readonly isCut: boolean;
}

/** Decides which calls are captured. */
export interface Capturing {
  /** Begins to capture a call of an application, unless its capture has ended, or has enough calls of this process. */
  begin(
    application: { readonly id: string; readonly captureUntil: number },
    described: () => RequestToCapture,
  ): CallCapture | undefined;
}

/** Calls of one capture: enough to find the one in question, little enough to be kept beside the tokens. */
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

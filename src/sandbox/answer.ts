/** What the sandbox answers: a value that a handler decides and `sendAnswer` writes. */
export interface Answer {
  readonly statusCode: number;
  /** Reason phrase; the usual one of the status by default. */
  readonly reason?: string;
  /** Field lines as they go out: name, value, name, value, …; without framing fields. */
  readonly fields: readonly string[];
  /** Content; a function starts a stream, which is sent chunked and ends when the client leaves. */
  readonly body: Buffer | (() => AsyncIterable<Uint8Array>) | undefined;
}

/** An answer with this JSON text, sent exactly as written. */
export function jsonAnswer(text: string, statusCode = 200, fields: readonly string[] = []): Answer {
  return contentAnswer("application/json", Buffer.from(text), statusCode, fields);
}

/** An answer with content of the given type. */
export function contentAnswer(
  contentType: string,
  body: Buffer,
  statusCode = 200,
  fields: readonly string[] = [],
): Answer {
  return { statusCode, fields: ["Content-Type", contentType, ...fields], body };
}

/** An answer without content. */
export function emptyAnswer(statusCode: number, fields: readonly string[] = []): Answer {
  return { statusCode, fields, body: undefined };
}

/** A refusal: a JSON object with a stable code and one sentence. */
export function errorAnswer(
  statusCode: number,
  error: string,
  description: string,
  fields: readonly string[] = [],
): Answer {
  return jsonAnswer(JSON.stringify({ error, error_description: description }), statusCode, fields);
}

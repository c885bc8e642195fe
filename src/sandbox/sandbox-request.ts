import { inspect } from "node:util";

/** What a {@link SandboxRequest} is made of. */
export type SandboxRequestFields = Omit<SandboxRequest, "toJSON" | typeof inspect.custom>;

/**
 * One request as the sandbox received it.
 *
 * Field lines, target and body may hold a token, so the printed forms leave them out. A class, unlike the rest of the
 * code, because the printed forms then live on one prototype and cost a benchmarked request nothing.
 */
export class SandboxRequest {
  /** As sent, case kept. */
  readonly method: string;
  /** Request target as it stood in the request line (RFC 9112 section 3.2), never decoded or normalised. */
  readonly target: string;
  /** `1.1` or `1.0`. */
  readonly httpVersion: string;
  /** Field lines as received: name, value, name, value, … (latin1 text). */
  readonly rawHeaders: readonly string[];
  /** Content after transfer decoding; content codings are left as they came. */
  readonly body: Buffer;
  /** Whether it carried, as bearer token, an access token that was valid at that moment. */
  readonly authorized: boolean;

  constructor(fields: SandboxRequestFields) {
    this.method = fields.method;
    this.target = fields.target;
    this.httpVersion = fields.httpVersion;
    this.rawHeaders = fields.rawHeaders;
    this.body = fields.body;
    this.authorized = fields.authorized;
  }

  /** The request without anything that may hold a token. */
  toJSON(): { method: string; path: string; httpVersion: string; bodyBytes: number; authorized: boolean } {
    return {
      method: this.method,
      path: this.target.split("?", 1)[0] ?? "",
      httpVersion: this.httpVersion,
      bodyBytes: this.body.length,
      authorized: this.authorized,
    };
  }

  /** What `util.inspect` and `console.log` print. */
  [inspect.custom](): string {
    return `SandboxRequest ${inspect(this.toJSON())}`;
  }
}

/** The last requests, oldest first, bounded by number and by bytes of content. */
export interface RequestLog {
  /** The same array for the life of the log. */
  readonly requests: readonly SandboxRequest[];
  add(request: SandboxRequest): void;
}

/**
 * Keeps at most `maxRequests` requests with at most `maxBytes` of content together: a benchmark that uploads 10 MiB a
 * thousand times must not fill the memory. The newest request is always kept.
 */
export function createRequestLog(limits: { maxRequests: number; maxBytes: number }): RequestLog {
  const requests: SandboxRequest[] = [];
  let bytes = 0;
  return {
    requests,
    add(request) {
      requests.push(request);
      bytes += request.body.length;
      while (requests.length > 1 && (requests.length > limits.maxRequests || bytes > limits.maxBytes)) {
        bytes -= requests.shift()?.body.length ?? 0;
      }
    },
  };
}

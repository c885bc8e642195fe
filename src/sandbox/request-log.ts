import type { SandboxRequest } from "./sandbox-request.js";

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

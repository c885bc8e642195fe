/** Notified when the caller disconnects. */
export interface CallerListener {
  handleEvent(): void;
}

/**
 * Aborts when the caller of a call disconnects, or when the call is evicted to free memory; then the reason is a
 * RelayError. Every AbortSignal fits. `ResponseSignal` is a lighter one, since an AbortController with its EventTarget
 * costs more than looking up a connection.
 */
export interface CallerSignal {
  readonly aborted: boolean;
  /** The error that the call rejects with after an abort. */
  readonly reason: unknown;
  addEventListener(type: "abort", listener: CallerListener): void;
  removeEventListener(type: "abort", listener: CallerListener): void;
}

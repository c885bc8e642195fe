/** Notified when the caller disconnects. */
export interface CallerListener {
  handleEvent(): void;
}

/**
 * Tells whether the caller of a call is gone, or the call had to give way to others: then the reason is a RelayError.
 * Every AbortSignal does; the JSON route has a lighter one of its own, since an AbortController with its EventTarget
 * costs more than looking a connection up.
 */
export interface CallerSignal {
  readonly aborted: boolean;
  /** What the call then rejects with. */
  readonly reason: unknown;
  addEventListener(type: "abort", listener: CallerListener): void;
  removeEventListener(type: "abort", listener: CallerListener): void;
}

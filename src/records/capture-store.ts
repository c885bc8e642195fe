/** Headers and bodies of one call, sealed. */
export interface SealedCapture {
  readonly callId: string;
  readonly applicationId: string;
  /** Which capture of the application it belongs to: the one that ends then. Milliseconds since the epoch. */
  readonly captureUntil: number;
  readonly content: Uint8Array;
  readonly createdAt: number;
}

/**
 * Keeps what was captured of calls. Every operation rejects with RelayError STORE_UNAVAILABLE when the store cannot be
 * used.
 */
export interface CaptureStore {
  /** Adds one, unless its capture has `maxCalls` already or its application does not exist any more: then false. */
  add(capture: SealedCapture, maxCalls: number): Promise<boolean>;
  /** Undefined when nothing was captured of this call, or nothing is left. */
  find(callId: string): Promise<SealedCapture | undefined>;
  /** Deletes what was captured before a time; at most `limit`. Resolves to how many. */
  deleteBefore(time: number, limit: number): Promise<number>;
}

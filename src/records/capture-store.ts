import { openSealed, type SealBinding, type Sealer } from "../sealing/seal.js";
import { type CaptureContent, MAX_CAPTURED_CALLS } from "./call-capture.js";
import { within } from "./list-calls.js";

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

const DOES_NOT_OPEN = "What was captured of this call cannot be opened. The operator must restore the key file.";

type CaptureKey = Pick<SealedCapture, "callId" | "applicationId">;

/** Seals what was captured of a call. */
export function sealCapture(sealer: Sealer, key: CaptureKey, content: CaptureContent): Uint8Array {
  return sealer.seal(JSON.stringify(content), bindingOf(key));
}

/** What was captured, in the clear. Throws RelayError STORE_UNAVAILABLE when it does not open. */
export function openCapture(sealer: Sealer, capture: SealedCapture): CaptureContent {
  const text = openSealed(sealer, capture.content, bindingOf(capture), DOES_NOT_OPEN).toString();
  return JSON.parse(text) as CaptureContent;
}

/** The call's id stands where a token has its user. */
function bindingOf({ callId, applicationId }: CaptureKey): SealBinding {
  return { table: "call_captures", column: "content", applicationId, userId: callId, providerName: "" };
}

/** What writing captures needs. */
interface CaptureWriterOptions {
  readonly captures: Pick<CaptureStore, "add">;
  readonly sealer: Sealer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** What could not be written is lost. */
  readonly onFault: (error: unknown) => void;
}

/** One captured call. */
interface CapturedCall {
  readonly callId: string;
  readonly applicationId: string;
  readonly captureUntil: number;
  readonly content: CaptureContent;
}

/** Keeps what was captured, beside the calls. */
export interface CaptureWriter {
  /** Never throws; drops it when too many are on their way. */
  add(captured: CapturedCall): void;
  /** Waits for what is on its way, for at most two seconds. */
  close(): Promise<void>;
}

/** On their way to the store, of some twenty kilobytes each. */
const MAX_WRITING = 20;
const CLOSE_MS = 2000;

/** Seals captures and writes them, each by itself: they are few. */
export function createCaptureWriter({ captures, sealer, now, onFault }: CaptureWriterOptions): CaptureWriter {
  const writing = new Set<Promise<void>>();
  const write = async ({ callId, applicationId, captureUntil, content }: CapturedCall): Promise<void> => {
    try {
      const sealed = sealCapture(sealer, { callId, applicationId }, content);
      const capture = { callId, applicationId, captureUntil, content: sealed, createdAt: now() };
      await captures.add(capture, MAX_CAPTURED_CALLS);
    } catch (error) {
      onFault(error);
    }
  };
  return {
    add(captured) {
      if (writing.size >= MAX_WRITING) return;
      const written: Promise<void> = write(captured).finally(() => writing.delete(written));
      writing.add(written);
    },
    close: () => within(Promise.all(writing), CLOSE_MS),
  };
}

import type { Sealer } from "../tokens/seal.js";
import type { CaptureContent } from "./capture-content.js";
import type { CaptureStore } from "./capture-store.js";
import { MAX_CAPTURED_CALLS } from "./capturing.js";
import { sealCapture } from "./seal-capture.js";
import { within } from "./within.js";

/** What writing captures needs. */
export interface CaptureWriterOptions {
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

import { type SealBinding, SealError, type Sealer } from "../sealing/seal.js";
import { type CaptureContent, MAX_CAPTURED_CALLS } from "./call-capture.js";
import { within } from "./list-calls.js";

/** The sealed headers and bodies of one call. */
export interface SealedCapture {
  readonly callId: string;
  readonly applicationId: string;
  /** Identifies the application's capture by its end time, in milliseconds since the epoch. */
  readonly captureUntil: number;
  readonly content: Uint8Array;
  readonly createdAt: number;
}

/**
 * Stores captured calls. Every operation rejects with RelayError STORE_UNAVAILABLE when the store cannot be used.
 */
export interface CaptureStore {
  /** Adds a call. False when its capture already has `maxCalls` calls or its application no longer exists. */
  add(capture: SealedCapture, maxCalls: number): Promise<boolean>;
  /** Undefined when the call was not captured, or its capture was deleted. */
  find(callId: string): Promise<SealedCapture | undefined>;
  /** Deletes at most `limit` calls captured before a time. Resolves to the number deleted. */
  deleteBefore(time: number, limit: number): Promise<number>;
}

const DOES_NOT_OPEN = "The capture cannot be opened: it is damaged, or its key is missing from the key file.";

type CaptureKey = Pick<SealedCapture, "callId" | "applicationId">;

/** Seals what was captured of a call. */
export function sealCapture(sealer: Sealer, key: CaptureKey, content: CaptureContent): Uint8Array {
  return sealer.seal(JSON.stringify(content), bindingOf(key));
}

/** A call's capture, or why it cannot be shown; neither when the call was not captured. */
export interface FoundCapture {
  readonly content?: CaptureContent;
  readonly problem?: string;
}

/** Finds and opens the capture of a call. */
export async function findCapture(
  captures: Pick<CaptureStore, "find">,
  sealer: Pick<Sealer, "open">,
  callId: string,
): Promise<FoundCapture> {
  const capture = await captures.find(callId);
  if (capture === undefined) return {};
  try {
    const text = sealer.open(capture.content, bindingOf(capture)).toString();
    return { content: JSON.parse(text) as CaptureContent };
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    return { problem: DOES_NOT_OPEN };
  }
}

/** The call id takes the place of the user id that a token is bound to. */
function bindingOf({ callId, applicationId }: CaptureKey): SealBinding {
  return { table: "call_captures", column: "content", applicationId, userId: callId, providerName: "" };
}

/** Options of {@link createCaptureWriter}. */
interface CaptureWriterOptions {
  readonly captures: Pick<CaptureStore, "add">;
  readonly sealer: Sealer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called when a capture could not be written; it is lost. */
  readonly onFault: (error: unknown) => void;
}

type CapturedCall = Omit<SealedCapture, "content" | "createdAt"> & { readonly content: CaptureContent };

/** Writes captures in the background. */
export interface CaptureWriter {
  /** Writes a capture; drops it when too many are being written. Never throws. */
  add(captured: CapturedCall): void;
  /** Waits for pending writes, for at most two seconds. */
  close(): Promise<void>;
}

/** Most captures being written at once, of some twenty kilobytes each. */
const MAX_WRITING = 20;
const CLOSE_MS = 2000;

/** Seals captures and writes them one by one, since they are few. */
export function createCaptureWriter({ captures, sealer, now, onFault }: CaptureWriterOptions): CaptureWriter {
  const writing = new Set<Promise<void>>();
  const write = async (captured: CapturedCall): Promise<void> => {
    try {
      const content = sealCapture(sealer, captured, captured.content);
      await captures.add({ ...captured, content, createdAt: now() }, MAX_CAPTURED_CALLS);
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

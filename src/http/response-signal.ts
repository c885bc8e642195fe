import type { CallerListener, CallerSignal } from "../model/caller-signal.js";
import type { HttpResponse } from "./exchange.js";

/**
 * Tells whether the caller is still there until its answer is written, and gives back what is held for the two together
 * when the response is closed, whatever closed it.
 */
export function watchCaller(response: HttpResponse, held: Held): ResponseSignal {
  const signal = new ResponseSignal(response);
  held.whenEvicted((reason) => signal.giveWay(reason));
  response.on("close", () => {
    held.release();
    signal.onClose();
  });
  return signal;
}

/** What is held for a call. */
interface Held {
  release(): void;
  whenEvicted(listener: (reason: unknown) => void): void;
}

/**
 * Aborts when the caller's connection closes before the answer is written. A class, since it is made for every call:
 * one object, no closures.
 */
export class ResponseSignal implements CallerSignal {
  aborted = false;
  reason: unknown;
  readonly #response: HttpResponse;
  /** One is all that most calls have, and it is removed when what it is there for has come. */
  #listener: CallerListener | undefined;
  #others: readonly CallerListener[] = NONE;

  constructor(response: HttpResponse) {
    this.#response = response;
  }

  addEventListener(_type: "abort", listener: CallerListener): void {
    if (this.#listener === undefined) this.#listener = listener;
    else this.#others = [...this.#others, listener];
  }

  removeEventListener(_type: "abort", listener: CallerListener): void {
    if (this.#listener === listener) this.#listener = undefined;
    else this.#others = this.#others.filter((other) => other !== listener);
  }

  /** To be called when the response is closed. */
  onClose(): void {
    // Over HTTP/2 a cancelled stream counts as finished, so what matters is whether we had written the answer.
    if (!this.#response.writableEnded) this.#abort(new Error("The caller is gone."));
  }

  /** To be called when what is held for the call is wanted for others: it ends with the reason, or in its answer. */
  giveWay(reason: unknown): void {
    if (this.#response.headersSent) this.#response.destroy();
    else this.#abort(reason);
  }

  #abort(reason: unknown): void {
    if (this.aborted) {
      // The caller of a call that gave way may go before it has its answer.
      this.reason = reason;
      return;
    }
    this.aborted = true;
    this.reason = reason;
    this.#listener?.handleEvent();
    for (const listener of this.#others) listener.handleEvent();
  }
}

const NONE: readonly CallerListener[] = [];

import { LinkedList, type Links } from "../linked-list.js";
import { Lane, type LaneOptions } from "./lane.js";

/** A call as its pool sees it. */
export interface PooledCall extends Links<PooledCall> {
  /** Calls with the same value may follow each other on one socket. */
  readonly share: string;
  /** Whether it may last: of such calls only so many are taken in. */
  readonly isStream: boolean;
  /** Set by the pool while it carries this call. */
  lane: Lane | undefined;
  /** Whether an idle socket ended under it: another one may end as well, so it gets a new one. */
  readonly wasReadded: boolean;
  /** Called by the pool when the call's turn has come. */
  send(lane: Lane): void;
}

/** What a pool needs to know beyond its lanes. */
export interface PoolOptions extends LaneOptions {
  /** Calls at once; more wait in order of arrival. */
  readonly maxConcurrent: number;
  /** Calls that may wait; more are refused, so that one slow provider does not take every place of the relay. */
  readonly maxWaiting: number;
}

/**
 * The sockets to one origin and the calls that wait for one.
 *
 * A reused socket is written to only after the event loop has read what was waiting on it. undici writes to one in the
 * check phase that follows; asked in the middle of a poll phase, it would do so before the loop comes back to the socket.
 * So it is asked in a check phase, and a whole poll phase lies between. Stray bytes of the provider close the socket
 * there, and the call goes out on a new one, instead of being answered by them (threats P22). One immediate per turn
 * serves all calls.
 */
export class Pool {
  readonly #origin: string;
  readonly #options: PoolOptions;
  readonly #waiting = new LinkedList<PooledCall>();
  readonly #idle: Lane[] = [];
  #running = 0;
  /** Of those that wait or run, the ones that may last. */
  readonly #streams = new Set<PooledCall>();
  #isArmed = false;
  #isClosed = false;
  #onDrained: (() => void) | undefined;

  constructor(origin: string, options: PoolOptions) {
    this.#origin = origin;
    this.#options = options;
  }

  /** Whether no call waits or runs. */
  get isIdle(): boolean {
    return this.#running === 0 && this.#waiting.size === 0;
  }

  /**
   * Takes a call in; it is sent when its turn comes. False when too many wait already, and for a stream when streams have
   * half of the places: they may last for hours, and must not keep the calls out that are over in a moment.
   */
  add(exchange: PooledCall): boolean {
    const { maxConcurrent, maxWaiting } = this.#options;
    if (this.#running + this.#waiting.size >= maxConcurrent + maxWaiting) return false;
    if (exchange.isStream) {
      if (this.#streams.size >= Math.max(1, maxConcurrent >> 1)) return false;
      this.#streams.add(exchange);
    }
    this.#waiting.add(exchange);
    this.#arm();
    return true;
  }

  /**
   * Lets a call go.
   *
   * @param isWhole whether the answer was read to its end, so that the socket may carry another call.
   */
  remove(exchange: PooledCall, isWhole: boolean): void {
    if (exchange.isStream) this.#streams.delete(exchange);
    this.#leave(exchange, isWhole);
    if (this.#isClosed && this.isIdle) this.#onDrained?.();
  }

  #leave(exchange: PooledCall, isWhole: boolean): void {
    const { lane } = exchange;
    if (lane === undefined) {
      this.#waiting.remove(exchange);
    } else {
      exchange.lane = undefined;
      this.#running -= 1;
      this.#release(lane, isWhole);
      if (this.#waiting.size > 0) this.#arm();
    }
  }

  /** Puts a call back that was not written because its idle socket ended under it. */
  readd(exchange: PooledCall): void {
    this.#waiting.add(exchange);
    this.#leave(exchange, false);
  }

  /** Ends idle sockets now and the others with their calls; resolves when all are gone. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const closing = this.#idle.splice(0).map((lane) => lane.destroy());
    if (!this.isIdle) {
      await new Promise<void>((resolve) => {
        this.#onDrained = resolve;
      });
    }
    await Promise.all(closing);
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(this.#onCheckPhase);
  }

  readonly #onCheckPhase = (): void => {
    this.#isArmed = false;
    this.#takeWaiting();
  };

  #takeWaiting(): void {
    for (let exchange = this.#waiting.first; exchange !== undefined; exchange = this.#waiting.first) {
      if (this.#running >= this.#options.maxConcurrent) return;
      this.#waiting.remove(exchange);
      this.#running += 1;
      const lane = (exchange.wasReadded ? undefined : this.#takeIdle(exchange.share)) ?? this.#newLane(exchange.share);
      exchange.lane = lane;
      exchange.send(lane);
    }
  }

  /** The socket used last comes first: the others grow old and are closed. */
  #takeIdle(share: string): Lane | undefined {
    for (let at = this.#idle.length - 1; at >= 0; at -= 1) {
      const lane = this.#idle[at] as Lane;
      if (lane.share !== share) continue;
      this.#idle.splice(at, 1);
      if (lane.isReusable) return lane;
      void lane.destroy();
    }
    return undefined;
  }

  /** Never more sockets than calls may run at once: idle ones of other connections make room. */
  #newLane(share: string): Lane {
    if (this.#running + this.#idle.length > this.#options.maxConcurrent) void this.#idle.shift()?.destroy();
    return new Lane(this.#origin, share, this.#options, this.#forget);
  }

  #release(lane: Lane, isWhole: boolean): void {
    if (!isWhole || this.#isClosed || this.#options.once) {
      void lane.destroy();
      return;
    }
    lane.isUsed = true;
    this.#idle.push(lane);
  }

  readonly #forget = (lane: Lane): void => {
    const at = this.#idle.indexOf(lane);
    if (at !== -1) this.#idle.splice(at, 1);
  };
}

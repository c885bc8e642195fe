import { LinkedList, type Links } from "../linked-list.js";
import { Lane, type LaneOptions, type LaneOwner } from "./lane.js";

/** A call as its pool sees it. */
export interface PooledCall extends Links<PooledCall> {
  /** Calls with the same value may follow each other on one socket. */
  readonly share: string;
  /** Whether it may last: of such calls only so many are taken in. */
  readonly isStream: boolean;
  /** Set by the pool while it carries this call. */
  lane: Lane | undefined;
  /** Whether a kept socket ended under it: another one may end as well, so it gets a new one. */
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
  /** How long nothing must have come on a socket before it carries another call, in milliseconds. */
  readonly quietMs: number;
  /** How long no socket is reused after the provider sent what nobody asked for, in milliseconds. */
  readonly distrustMs: number;
  /** Called when it did. */
  readonly onStray: (origin: string) => void;
}

/**
 * The sockets to one origin and the calls that wait for one.
 *
 * HTTP/1.1 knows whose an answer is by its place alone, so a provider that sends a second answer to one request answers
 * the next one with it. What comes on a socket that carries no call closes it. Therefore a socket rests after each answer:
 * a stray answer that is late by less than that meets nobody. One that is later is seen in most cases, too, and so is the
 * right answer that it pushes behind it: from then on no socket to this origin is reused for a while.
 *
 * A reused socket is written to only after the event loop has read what was waiting on it. undici writes to one in the
 * check phase that follows; asked in the middle of a poll phase, it would do so before the loop comes back to the socket.
 * So it is asked in a check phase, and a whole poll phase lies between. Stray bytes of the provider close the socket
 * there, and the call goes out on a new one, instead of being answered by them (threats P22). One immediate per turn
 * serves all calls.
 */
export class Pool implements LaneOwner {
  readonly #origin: string;
  readonly #options: PoolOptions;
  readonly #waiting = new LinkedList<PooledCall>();
  /** In the order in which their rests end. */
  readonly #resting = new LinkedList<Lane>();
  /** Those that have rested, in the order of their last use. */
  readonly #idle: Lane[] = [];
  #running = 0;
  /** In milliseconds of `performance.now()`. */
  #distrustedUntil = 0;
  /** Of those that wait or run, the ones that may last. */
  readonly #streams = new Set<PooledCall>();
  #isArmed = false;
  #restTimer: NodeJS.Timeout | undefined;
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

  /** Puts a call back whose kept socket ended under it. */
  readd(exchange: PooledCall): void {
    this.#waiting.add(exchange);
    this.#leave(exchange, false);
  }

  /** Ends idle sockets now and the others with their calls; resolves when all are gone. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#restTimer);
    const closing = this.#endKept();
    if (!this.isIdle) {
      await new Promise<void>((resolve) => {
        this.#onDrained = resolve;
      });
    }
    await Promise.all(closing);
  }

  #endKept(): Array<Promise<void>> {
    const closing = this.#idle.splice(0).map((lane) => lane.destroy());
    for (let lane = this.#resting.first; lane !== undefined; lane = this.#resting.first) {
      this.#resting.remove(lane);
      closing.push(lane.destroy());
    }
    return closing;
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
    this.#endRests();
    for (let exchange = this.#waiting.first; exchange !== undefined; exchange = this.#waiting.first) {
      if (this.#running >= this.#options.maxConcurrent) return;
      const lane = (exchange.wasReadded ? undefined : this.#takeIdle(exchange.share)) ?? this.#newLane(exchange.share);
      if (lane === undefined) return;
      this.#waiting.remove(exchange);
      this.#running += 1;
      exchange.lane = lane;
      exchange.send(lane);
    }
  }

  #endRests(): void {
    const now = performance.now();
    for (let lane = this.#resting.first; lane !== undefined; lane = this.#resting.first) {
      if (lane.restsUntil > now) return;
      this.#resting.remove(lane);
      this.#idle.push(lane);
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

  /**
   * Never more sockets than calls may run at once: idle ones of other connections make room. Where there are none, a
   * resting one will: its rest is waited for, since making new sockets for all calls costs more than the rests do.
   */
  #newLane(share: string): Lane | undefined {
    if (this.#running + this.#idle.length + this.#resting.size >= this.#options.maxConcurrent) {
      const idle = this.#idle.shift();
      if (idle === undefined) return this.#awaitRest();
      void idle.destroy();
    }
    return new Lane(this.#origin, share, this.#options, this);
  }

  #awaitRest(): undefined {
    const restsUntil = this.#resting.first?.restsUntil ?? 0;
    clearTimeout(this.#restTimer);
    this.#restTimer = setTimeout(() => this.#arm(), Math.ceil(restsUntil - performance.now()));
  }

  #release(lane: Lane, isWhole: boolean): void {
    const now = performance.now();
    if (!isWhole || this.#isClosed || this.#options.once || now < this.#distrustedUntil) {
      void lane.destroy();
      return;
    }
    lane.rest(now + this.#options.quietMs);
    this.#resting.add(lane);
  }

  /** Called whenever the socket of a lane has closed. */
  onClosed(lane: Lane): void {
    const at = this.#idle.indexOf(lane);
    if (at !== -1) this.#idle.splice(at, 1);
    this.#resting.remove(lane);
    if (this.#waiting.size > 0) this.#arm();
  }

  /** Called when something came on a lane that carries no call. */
  onStray(): void {
    const now = performance.now();
    if (now >= this.#distrustedUntil) this.#options.onStray(this.#origin);
    this.#distrustedUntil = now + this.#options.distrustMs;
    for (const closing of this.#endKept()) void closing;
  }
}

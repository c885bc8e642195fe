import { LinkedList, type Links, Parties, Shares } from "../lib/shares.js";
import { PooledSocket, type PooledSocketOptions, type PooledSocketOwner } from "./pooled-socket.js";
import type { CallLimits } from "./request.js";

/** A call as its pool sees it. */
export interface PooledCall extends Links<PooledCall> {
  /** The call's application. */
  readonly applicationId: string;
  /** Calls with the same value may use the same socket one after another. */
  readonly share: string;
  /** Whether it may last for hours; the number of such calls is limited. */
  readonly isStream: boolean;
  /** Set by the pool while the call is in it. */
  party: Party | undefined;
  /** Set by the pool while the call has a socket. */
  socket: PooledSocket | undefined;
  /** Whether a kept socket closed during the call. It then gets a new one, since another kept one may close as well. */
  readonly wasReadded: boolean;
  /** Called by the pool when it is the call's turn. */
  send(socket: PooledSocket): void;
}

/** Options of a pool. */
export interface PoolOptions
  extends PooledSocketOptions,
    Pick<CallLimits, "maxConcurrent" | "maxWaiting" | "quietMs" | "distrustMs"> {
  /** Called after a stray answer. */
  readonly onStray: (origin: string) => void;
}

/**
 * Sockets are not reused in the last second before the provider's observed idle timeout: a round trip takes less. A
 * socket that closes within its first idle second met no timeout, but a restart or a limit of calls.
 */
const CLOSE_MARGIN_MS = 1000;

/** One application's share of a pool. */
export class Party implements Links<Party> {
  previous: Party | undefined;
  next: Party | undefined;
  /** Calls that wait or run; `running` and `streams` count those that run and those that are streams. */
  places = 0;
  running = 0;
  streams = 0;
  readonly waiting = new LinkedList<PooledCall>();

  get isIdle(): boolean {
    return this.places === 0;
  }
}

/**
 * The sockets to one origin and the queue of calls for them.
 *
 * Waiting and running places are each shared fairly among applications, so that one with slow calls does not block the
 * others. The next turn goes to the application with the fewest running calls.
 *
 * HTTP/1.1 matches answers to requests only by their order. If a provider sends a second answer to one request, the
 * next request on that socket gets it. Bytes that arrive on a socket without a call close it. So a socket rests after
 * each answer: a stray answer that arrives during the rest does no harm. Most later ones are also noticed, as is the
 * right answer that one displaces; from then on no socket to this origin is reused for a while.
 *
 * A reused socket is written to only after the event loop has read what was pending on it. undici writes in the next
 * check phase; dispatched in the middle of a poll phase, it would write before the loop gets back to that socket. So
 * the pool dispatches in a check phase, and a whole poll phase lies in between. Stray bytes close the socket there, and
 * the call is sent on a new one instead of being answered by them (threats P22). One setImmediate per turn serves all
 * calls.
 */
export class Pool implements PooledSocketOwner {
  readonly #origin: string;
  readonly #options: PoolOptions;
  readonly #parties = new Parties(() => new Party());
  /** Shares of the calls that wait or run, of those that run, and of the streams. */
  readonly #places: Shares;
  readonly #running: Shares;
  readonly #streams: Shares;
  /** Applications with waiting calls, in round-robin order. */
  readonly #line = new LinkedList<Party>();
  /** Resting sockets, in the order in which their rests end. */
  readonly #resting = new LinkedList<PooledSocket>();
  /** Sockets whose rest is over, in order of last use. */
  readonly #idle: PooledSocket[] = [];
  /** Until when no socket is reused, in milliseconds of `performance.now()`. */
  #distrustedUntil = 0;
  /** Longest idle time after which a socket is still reused; lower where the provider closes sockets earlier. */
  #maxIdleMs: number;
  #isArmed = false;
  #restTimer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #onDrained: (() => void) | undefined;

  constructor(origin: string, options: PoolOptions) {
    this.#origin = origin;
    this.#options = options;
    this.#maxIdleMs = options.keepAliveTimeoutMs;
    this.#places = new Shares(options.maxConcurrent + options.maxWaiting);
    this.#running = new Shares(options.maxConcurrent);
    this.#streams = new Shares(Math.max(1, options.maxConcurrent >> 1));
  }

  /** Whether no call waits or runs. */
  get isIdle(): boolean {
    return this.#places.total === 0;
  }

  /**
   * Queues a call; it is sent when its turn comes. False when its application has its share of the places already. Also
   * false for a stream when its application has its share of the streams. Streams get half of the running places: they
   * may last for hours, and must not keep out short calls.
   */
  add(exchange: PooledCall): boolean {
    const party = this.#parties.of(exchange.applicationId);
    if (!this.#places.isOpenTo(party.places)) return false;
    if (exchange.isStream) {
      if (!this.#streams.isOpenTo(party.streams)) return false;
      party.streams = this.#streams.take(party.streams, 1);
    }
    party.places = this.#places.take(party.places, 1);
    exchange.party = party;
    this.#enqueue(exchange, party);
    return true;
  }

  #enqueue(exchange: PooledCall, party: Party): void {
    if (party.waiting.size === 0) this.#line.add(party);
    party.waiting.add(exchange);
    this.#arm();
  }

  /**
   * Removes a call and frees its socket.
   *
   * @param isWhole whether the answer was read to its end, so that the socket may carry another call.
   */
  remove(exchange: PooledCall, isWhole: boolean): void {
    const { socket, party } = exchange;
    if (party === undefined) return;
    exchange.party = undefined;
    if (socket === undefined) party.waiting.remove(exchange);
    if (party.waiting.size === 0) this.#line.remove(party);
    if (socket !== undefined) this.#stop(exchange, socket, party, isWhole);
    if (exchange.isStream) party.streams = this.#streams.giveBack(party.streams, 1);
    party.places = this.#places.giveBack(party.places, 1);
    if (this.#isClosed && this.isIdle) this.#onDrained?.();
  }

  #stop(exchange: PooledCall, socket: PooledSocket, party: Party, isWhole: boolean): void {
    exchange.socket = undefined;
    party.running = this.#running.giveBack(party.running, 1);
    this.#release(socket, isWhole);
    if (this.#line.size > 0) this.#arm();
  }

  /** Queues a call again after its kept socket closed. */
  readd(exchange: PooledCall): void {
    const { socket, party } = exchange;
    if (socket === undefined || party === undefined) return;
    this.#stop(exchange, socket, party, false);
    this.#enqueue(exchange, party);
  }

  /** Closes idle sockets now and the others after their calls; resolves when all calls have ended. */
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
    const closing = this.#idle.splice(0).map((socket) => socket.destroy());
    for (let socket = this.#resting.first; socket !== undefined; socket = this.#resting.first) {
      this.#resting.remove(socket);
      closing.push(socket.destroy());
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
    for (let party = this.#nextParty(); party !== undefined; party = this.#nextParty()) {
      const exchange = party.waiting.first as PooledCall;
      const socket =
        (exchange.wasReadded ? undefined : this.#takeIdle(exchange.share)) ?? this.#newSocket(exchange.share);
      if (socket === undefined) return;
      party.waiting.remove(exchange);
      this.#line.remove(party);
      if (party.waiting.size > 0) this.#line.add(party);
      party.running = this.#running.take(party.running, 1);
      exchange.socket = socket;
      exchange.send(socket);
    }
  }

  /** The waiting application with the fewest running calls; of several, the one whose turn was longest ago. */
  #nextParty(): Party | undefined {
    let next = this.#line.first;
    for (let party = next?.next; party !== undefined; party = party.next) {
      if (party.running < (next as Party).running) next = party;
    }
    if (next === undefined || !this.#running.isOpenTo(next.running)) return undefined;
    return next;
  }

  #endRests(): void {
    const now = performance.now();
    for (let socket = this.#resting.first; socket !== undefined; socket = this.#resting.first) {
      if (socket.restsUntil > now) return;
      this.#resting.remove(socket);
      this.#idle.push(socket);
    }
  }

  /** Takes the most recently used socket, so that the others can time out. */
  #takeIdle(share: string): PooledSocket | undefined {
    if (this.#idle.length === 0) return undefined;
    const oldest = performance.now() - this.#maxIdleMs;
    for (let at = this.#idle.length - 1; at >= 0; at -= 1) {
      const socket = this.#idle[at] as PooledSocket;
      if (socket.restsSince < oldest) return undefined;
      if (socket.share !== share) continue;
      this.#idle.splice(at, 1);
      if (socket.isReusable) return socket;
      void socket.destroy();
    }
    return undefined;
  }

  /**
   * Opens a socket, but never more than there may be concurrent calls: an idle one of another connection is closed
   * first. If only resting ones are left, the call waits for one, since new sockets for all calls would cost more than
   * the rests.
   */
  #newSocket(share: string): PooledSocket | undefined {
    if (this.#running.total + this.#idle.length + this.#resting.size >= this.#options.maxConcurrent) {
      const idle = this.#idle.shift();
      if (idle === undefined) return this.#awaitRest();
      void idle.destroy();
    }
    return new PooledSocket(this.#origin, share, this.#options, this);
  }

  #awaitRest(): undefined {
    // The other rests end later.
    if (this.#restTimer !== undefined) return;
    const restsUntil = this.#resting.first?.restsUntil ?? 0;
    this.#restTimer = setTimeout(
      () => {
        this.#restTimer = undefined;
        this.#arm();
      },
      Math.ceil(restsUntil - performance.now()),
    );
  }

  #release(socket: PooledSocket, isWhole: boolean): void {
    const now = performance.now();
    if (!isWhole || this.#isClosed || this.#options.once || now < this.#distrustedUntil) {
      void socket.destroy();
      return;
    }
    socket.rest(now, now + this.#options.quietMs);
    this.#resting.add(socket);
  }

  onClosed(socket: PooledSocket, isProviders: boolean): void {
    this.#endRests();
    const at = this.#idle.indexOf(socket);
    if (at !== -1) {
      this.#idle.splice(at, 1);
      this.#learn(performance.now() - socket.restsSince, isProviders);
    }
    this.#resting.remove(socket);
    if (this.#line.size > 0) this.#arm();
  }

  /**
   * Learns the provider's idle timeout. A request on a socket that the provider is just closing may be lost, and only
   * some can be sent again. A provider that closed a socket after this idle time will do so again. Older sockets are
   * left open, unused: if one outlives the learned time, the limit is lifted.
   */
  #learn(idleMs: number, isProviders: boolean): void {
    if (!isProviders && idleMs > this.#maxIdleMs) this.#maxIdleMs = this.#options.keepAliveTimeoutMs;
    if (isProviders && idleMs > CLOSE_MARGIN_MS) this.#maxIdleMs = Math.max(idleMs - CLOSE_MARGIN_MS, idleMs / 2);
  }

  /** Called when bytes arrive on a socket that carries no call. */
  onStray(): void {
    const now = performance.now();
    if (now >= this.#distrustedUntil) this.#options.onStray(this.#origin);
    this.#distrustedUntil = now + this.#options.distrustMs;
    for (const closing of this.#endKept()) void closing;
  }
}

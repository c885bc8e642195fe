import { LinkedList, type Links, Parties, Shares } from "../lib/shares.js";
import { PooledSocket, type PooledSocketOptions, type PooledSocketOwner } from "./pooled-socket.js";

/** A call as its pool sees it. */
export interface PooledCall extends Links<PooledCall> {
  /** Whose call it is. */
  readonly applicationId: string;
  /** Calls with the same value may follow each other on one socket. */
  readonly share: string;
  /** Whether it may last: of such calls only so many are taken in. */
  readonly isStream: boolean;
  /** Set by the pool while it has this call. */
  party: Party | undefined;
  /** Set by the pool while it carries this call. */
  socket: PooledSocket | undefined;
  /** Whether a kept socket ended under it: another one may end as well, so it gets a new one. */
  readonly wasReadded: boolean;
  /** Called by the pool when the call's turn has come. */
  send(socket: PooledSocket): void;
}

/** What a pool needs to know beyond its sockets. */
export interface PoolOptions extends PooledSocketOptions {
  /** Calls at once; more wait, in order of arrival those of one application. */
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
 * No socket is used for so long before its provider has been seen to close idle ones: twice the way there takes less. One
 * that is closed earlier has met no time-out, but a restart, or a limit of calls.
 */
const CLOSE_MARGIN_MS = 1000;

/** What one application has of a pool. */
export class Party implements Links<Party> {
  previous: Party | undefined;
  next: Party | undefined;
  /** Calls that wait or run; of them, those that run, and those that may last. */
  places = 0;
  running = 0;
  streams = 0;
  readonly waiting = new LinkedList<PooledCall>();

  get isIdle(): boolean {
    return this.places === 0;
  }
}

/**
 * The sockets to one origin and the calls that wait for one.
 *
 * The places are shared out among applications, those that wait and those that run each: whose calls take long keeps
 * nobody else's waiting. It is the turn of the application that has fewest running.
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
export class Pool implements PooledSocketOwner {
  readonly #origin: string;
  readonly #options: PoolOptions;
  readonly #parties = new Parties(() => new Party());
  /** Of all calls that wait or run; of those that run; and of those that may last. */
  readonly #places: Shares;
  readonly #running: Shares;
  readonly #streams: Shares;
  /** Those with calls that wait, in the order in which it is their turn. */
  readonly #line = new LinkedList<Party>();
  /** In the order in which their rests end. */
  readonly #resting = new LinkedList<PooledSocket>();
  /** Those that have rested, in the order of their last use. */
  readonly #idle: PooledSocket[] = [];
  /** In milliseconds of `performance.now()`. */
  #distrustedUntil = 0;
  /** How long a socket may have been idle that carries another call: less where the provider closes them earlier. */
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
   * Takes a call in; it is sent when its turn comes. False when too many of its application wait already, and for a stream
   * when streams have half of the places: they may last for hours, and must not keep the calls out that are over in a
   * moment.
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
   * Lets a call go.
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

  /** Puts a call back whose kept socket ended under it. */
  readd(exchange: PooledCall): void {
    const { socket, party } = exchange;
    if (socket === undefined || party === undefined) return;
    this.#stop(exchange, socket, party, false);
    this.#enqueue(exchange, party);
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

  /** Of those that wait, the one with fewest calls under way; of several, the one whose turn was longest ago. */
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

  /** The socket used last comes first: the others grow old and are closed. */
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
   * Never more sockets than calls may run at once: idle ones of other connections make room. Where there are none, a
   * resting one will: its rest is waited for, since making new sockets for all calls costs more than the rests do.
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
    // The others end later.
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
   * A request that meets a socket while the provider closes it may be lost, and only some can be sent again. A provider
   * that closed one after so long does so again; those that are older are left to it, so that it shows when it does not.
   */
  #learn(idleMs: number, isProviders: boolean): void {
    if (!isProviders && idleMs > this.#maxIdleMs) this.#maxIdleMs = this.#options.keepAliveTimeoutMs;
    if (isProviders && idleMs > CLOSE_MARGIN_MS) this.#maxIdleMs = Math.max(idleMs - CLOSE_MARGIN_MS, idleMs / 2);
  }

  /** Called when something came on a socket that carries no call. */
  onStray(): void {
    const now = performance.now();
    if (now >= this.#distrustedUntil) this.#options.onStray(this.#origin);
    this.#distrustedUntil = now + this.#options.distrustMs;
    for (const closing of this.#endKept()) void closing;
  }
}

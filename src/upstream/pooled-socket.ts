import { Socket } from "node:net";
import type { Dispatcher } from "undici";
import type { Links } from "../lib/shares.js";
import type { Connect } from "./connector.js";
import { Client, errors } from "./undici.js";

/** What the sockets of one pool have in common. */
export interface PooledSocketOptions {
  readonly connect: Connect;
  /** Header octets of an answer. */
  readonly maxHeaderBytes: number;
  readonly keepAliveTimeoutMs: number;
  /** Whether a socket carries one call only, and the request says so (`connection: close`). */
  readonly once: boolean;
  /** Of all sockets of the process. */
  readonly pace: ReadPace;
}

/** Whoever keeps a socket. */
export interface PooledSocketOwner {
  /**
   * Called whenever its socket has closed.
   *
   * @param isProviders whether the provider has closed it, and not undici: it was idle for too long, or carried its last
   *   call.
   */
  onClosed(socket: PooledSocket, isProviders: boolean): void;
  /** Called when something came that is no answer to a request, and no notice that the provider closes the socket. */
  onStray(): void;
}

/** How every answer begins (RFC 9112 section 2.3). The parser takes HTTP/2.0 and RTSP/1.0 as well. */
const VERSION = "HTTP/1.";

/** Of one answer, so much is read as it comes: most are smaller, and wait for no larger one. */
const AT_ONCE_BYTES = 64 * 1024;
/** Of large answers, so much is read in one turn of the event loop: otherwise it would be 2 MiB of each socket. */
const TURN_BYTES = 256 * 1024;

/** Shares out among sockets what is read of large answers in one turn of the event loop. */
export class ReadPace {
  #left = TURN_BYTES;
  #isArmed = false;
  readonly #waiting = new Set<PooledSocket>();

  /** Whether a socket may read now; if not, it is told to when its turn comes. */
  mayRead(socket: PooledSocket): boolean {
    if (this.#left > 0) return true;
    this.#waiting.add(socket);
    return false;
  }

  /** Counts what was read. */
  count(bytes: number): void {
    this.#left -= bytes;
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(() => this.#onTurn());
  }

  #onTurn(): void {
    this.#isArmed = false;
    this.#left = TURN_BYTES;
    for (const socket of this.#waiting) {
      if (this.#left <= 0) return;
      this.#waiting.delete(socket);
      socket.readMore();
    }
  }
}

/** What the provider may send next: nothing, since no request was written; the head of an answer; the rest of it. */
type Expected = "nothing" | "head" | "rest";

/**
 * One socket to a provider, carrying one call at a time: an undici Client of its own, destroyed with a call that is
 * given up. A Client whose request is aborted would open a new socket for it, only to find out that it is not needed;
 * a destroyed one does not. And no request ever waits in a Client, where an answer could meet the wrong one.
 */
export class PooledSocket implements Links<PooledSocket> {
  /** The pool's, while it rests. */
  previous: PooledSocket | undefined;
  next: PooledSocket | undefined;
  /** Calls with the same value may follow each other here. */
  readonly share: string;
  readonly #client: Client;
  readonly #owner: PooledSocketOwner;
  readonly #pace: ReadPace;
  #socket: Socket | undefined;
  #isBroken = false;
  #isUsed = false;
  #restsUntil = 0;
  #restsSince = 0;
  #isHeld = false;
  #expected: Expected = "nothing";
  /** Bytes read of the answer. */
  #taken = 0;
  /** Characters of the version that have come. */
  #versionLength = 0;

  constructor(origin: string, share: string, options: PooledSocketOptions, owner: PooledSocketOwner) {
    this.share = share;
    this.#owner = owner;
    this.#pace = options.pace;
    this.#client = new Client(origin, {
      connect: (dial, callback) => this.#watch(options.connect(dial, callback)),
      pipelining: options.once ? 0 : 1,
      maxHeaderSize: options.maxHeaderBytes,
      // The deadline of the call covers these, and drips as well, which they do not (threats P03, P04).
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: options.keepAliveTimeoutMs,
      // A provider's Keep-Alive field may shorten the time, not lengthen it.
      keepAliveMaxTimeout: options.keepAliveTimeoutMs,
    });
    this.#client.on("disconnect", (_origin, _clients, error) => this.#onDisconnect(error));
  }

  /** Whether it can carry another call: open, and its last request left entirely. */
  get isReusable(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed && this.#socket.writableLength === 0;
  }

  /** Whether its socket carried a call before. */
  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** Whether the socket ended by an error, so that an answer that ends with it cannot be known to be whole. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Until when it carries no call, in milliseconds of `performance.now()`. */
  get restsUntil(): number {
    return this.#restsUntil;
  }

  /** Since when it carries no call, in milliseconds of `performance.now()`. */
  get restsSince(): number {
    return this.#restsSince;
  }

  /** Sends a request, or tells the handler why not. */
  send(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(request, handler);
  }

  /** The request is about to be written: what comes from now on is taken for its answer. */
  expectAnswer(): void {
    this.#expected = "head";
    this.#versionLength = 0;
    this.#taken = 0;
  }

  /** The answer is whole: whatever comes before the next request closes the socket. */
  rest(since: number, until: number): void {
    this.#isUsed = true;
    this.#expected = "nothing";
    this.#restsSince = since;
    this.#restsUntil = until;
  }

  /**
   * Takes no more from the provider until {@link readOn} is called: what it sends waits in the socket, then at the
   * provider. undici has a pause of its own, but a socket that ends or fails during it ends the process with a failed
   * assertion (7.30.2, Parser.finish in lib/dispatcher/client-h1.js): a provider must not be able to do that.
   */
  hold(): void {
    this.#isHeld = true;
  }

  /** What is waiting is read when its turn comes. */
  unhold(): void {
    this.#isHeld = false;
  }

  /** What is waiting is read now; not to be called by a handler of undici, which reads on by itself. */
  readOn(): void {
    this.unhold();
    this.readMore();
  }

  /** What is waiting is read now, unless it is held. */
  readMore(): void {
    this.#socket?.emit("readable");
  }

  /** Ends the socket at once, also while it connects; resolves when an open one is closed. */
  destroy(): Promise<void> {
    const closed = this.#client.destroy();
    // A Client does not know its socket before it is connected. The error ends the connect timer, too.
    this.#socket?.destroy(new Error("given up"));
    return closed;
  }

  #watch(socket: Socket | undefined): void {
    this.#socket = socket;
    this.#isBroken = false;
    this.#isUsed = false;
    if (socket === undefined) return;
    // undici lets go of the process with each answer and holds on to it with each request: two calls into the system's
    // library for nothing, since the listener holds on to it anyway.
    socket.ref = itself;
    socket.unref = itself;
    // undici takes bytes from a socket by this alone. Neither undici 7 nor a line of Node.js up to 26 has a public way to
    // look at them first: `onread` of node:net replaces reading, and only for sockets that are made with it.
    socket.read = (size) => this.#read(socket, size);
    socket.on("error", () => {
      this.#isBroken = true;
      // A TLS error after the handshake is only reported by Node.js; without this, the call would wait for its deadline.
      socket.destroy();
    });
  }

  #read(socket: Socket, size: number | undefined): Buffer | null {
    // Node.js itself asks without taking anything.
    if (this.#isHeld && size !== 0) return null;
    const isPaced = this.#taken >= AT_ONCE_BYTES && size !== 0;
    if (isPaced && !this.#pace.mayRead(this)) return null;
    const chunk: Buffer | null = Socket.prototype.read.call(socket, size);
    if (chunk !== null) {
      this.#taken += chunk.length;
      if (isPaced) this.#pace.count(chunk.length);
    }
    if (chunk === null || this.#expected === "rest") return chunk;
    if (this.#expected === "head" && this.#beginsAnswer(chunk)) return chunk;
    if (this.#expected === "nothing" && !isClosingNotice(chunk)) this.#owner.onStray();
    socket.destroy(new errors.HTTPParserError("no answer in HTTP/1"));
    return null;
  }

  /** Whether the bytes can be the beginning of an answer; empty lines may stand before it. */
  #beginsAnswer(chunk: Buffer): boolean {
    for (const byte of chunk) {
      if (this.#versionLength === 0 && (byte === CR || byte === LF)) continue;
      if (byte !== VERSION.charCodeAt(this.#versionLength)) return false;
      this.#versionLength += 1;
      if (this.#versionLength < VERSION.length) continue;
      this.#expected = "rest";
      break;
    }
    return true;
  }

  /** What stands in one packet with the end of an answer is seen by undici's parser alone. */
  #onDisconnect(error: Error): void {
    if (this.#expected === "nothing" && error instanceof errors.SocketError && this.#socket?.readableEnded === false) {
      this.#owner.onStray();
    }
    this.#owner.onClosed(this, !(error instanceof errors.InformationalError));
  }
}

const CR = 0x0d;
const LF = 0x0a;

/** Some servers say that they close an idle socket, with a 408 (RFC 9110 section 15.5.9); empty lines say nothing. */
function isClosingNotice(chunk: Buffer): boolean {
  return /^(?:HTTP\/1\.[01] 408[ \r]|[\r\n]*$)/.test(chunk.toString("latin1", 0, 16));
}

function itself(this: Socket): Socket {
  return this;
}

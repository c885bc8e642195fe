import { Socket } from "node:net";
import type { Dispatcher } from "undici";
import type { Links } from "../lib/shares.js";
import type { Connect } from "./connector.js";
import type { CallLimits } from "./request.js";
import { Client, errors } from "./undici.js";

/** Options shared by all sockets of one pool. */
export interface PooledSocketOptions extends Pick<CallLimits, "maxHeaderBytes" | "keepAliveTimeoutMs"> {
  readonly connect: Connect;
  /** Whether a socket carries only one call, which then sends `connection: close`. */
  readonly once: boolean;
  /** Shared by all sockets of the process. */
  readonly pace: ReadPace;
  /** Shared as well. */
  readonly kept: KeptSockets;
}

/** The owner of a socket. */
export interface PooledSocketOwner {
  /**
   * Called when its socket has closed.
   *
   * @param isProviders whether the provider closed it, rather than the relay, or undici after its idle timeout or its last call.
   */
  onClosed(socket: PooledSocket, isProviders: boolean): void;
  /**
   * Called when bytes arrive that are neither an answer to a request nor a notice that the provider closes the socket.
   */
  onStray(): void;
}

/** The sockets of the process that carry no call. Above the limit the one that was used longest ago is closed. */
export class KeptSockets {
  readonly #sockets = new Set<PooledSocket>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  add(socket: PooledSocket): void {
    this.#sockets.add(socket);
    if (this.#sockets.size <= this.#max) return;
    const [oldest] = this.#sockets;
    void oldest?.destroy();
  }

  delete(socket: PooledSocket): void {
    this.#sockets.delete(socket);
  }
}

/** How every answer begins (RFC 9112 section 2.3). undici's parser would also accept HTTP/2.0 and RTSP/1.0. */
const VERSION = "HTTP/1.";

/** Bytes of each answer that are read without pacing, so that small answers never wait for large ones. */
const AT_ONCE_BYTES = 64 * 1024;
/** Bytes of large answers read per turn of the event loop, over all sockets; without a limit, 2 MiB of each socket. */
const TURN_BYTES = 256 * 1024;

/** Limits how much of large answers is read in one turn of the event loop, and shares it among sockets. */
export class ReadPace {
  #left = TURN_BYTES;
  #isArmed = false;
  readonly #waiting = new Set<PooledSocket>();

  /** Whether a socket may read now. If not, its `readMore()` is called when its turn comes. */
  mayRead(socket: PooledSocket): boolean {
    if (this.#left > 0) return true;
    this.#waiting.add(socket);
    return false;
  }

  /** Counts bytes read, and renews the allowance in the next turn. */
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

/** What the provider may send next: nothing without a request, then the head of an answer, then the rest of it. */
type Expected = "nothing" | "head" | "rest";

/**
 * One socket to a provider, for one call at a time. Each has its own undici Client, which is destroyed when its call is
 * abandoned: a Client whose request was only aborted would open a new socket that nobody needs. No request ever waits
 * inside a Client, where it could get the wrong answer.
 */
export class PooledSocket implements Links<PooledSocket> {
  /** Links of the pool's list of resting sockets. */
  previous: PooledSocket | undefined;
  next: PooledSocket | undefined;
  /** Calls with the same value may use this socket one after another. */
  readonly share: string;
  /** Whether it has carried a call before. */
  isUsed = false;
  /** Whether the socket closed with an error, so that an answer that ends with it may be incomplete. */
  isBroken = false;
  /** When its rest ends, in milliseconds of `performance.now()`. */
  restsUntil = 0;
  /** When its last call ended, in milliseconds of `performance.now()`. */
  restsSince = 0;
  readonly #client: Client;
  readonly #owner: PooledSocketOwner;
  readonly #pace: ReadPace;
  readonly #kept: KeptSockets;
  #isGivenUp = false;
  #socket: Socket | undefined;
  #isHeld = false;
  #expected: Expected = "nothing";
  /** Bytes of the answer read so far. */
  #taken = 0;
  /** Characters of the version received so far. */
  #versionLength = 0;

  constructor(origin: string, share: string, options: PooledSocketOptions, owner: PooledSocketOwner) {
    this.share = share;
    this.#owner = owner;
    this.#pace = options.pace;
    this.#kept = options.kept;
    this.#client = new Client(origin, {
      connect: (dial, callback) => this.#watch(options.connect(dial, callback)),
      pipelining: options.once ? 0 : 1,
      maxHeaderSize: options.maxHeaderBytes,
      // Off: the deadline of the call covers these, and also slow drips, which they do not (threats P03, P04).
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: options.keepAliveTimeoutMs,
      // A provider's Keep-Alive field may shorten this time but not extend it.
      keepAliveMaxTimeout: options.keepAliveTimeoutMs,
    });
    this.#client.on("disconnect", (_origin, _clients, error) => this.#onDisconnect(error));
  }

  /** Whether it can carry another call: it is open, and its last request is fully written. */
  get isReusable(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed && this.#socket.writableLength === 0;
  }

  /** Sends a request; on failure calls the handler's `onError()`. */
  send(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#kept.delete(this);
    this.#client.dispatch(request, handler);
  }

  /** Call before a request is written: bytes that arrive from now on belong to its answer. */
  expectAnswer(): void {
    this.#expected = "head";
    this.#versionLength = 0;
    this.#taken = 0;
  }

  /** Call after a complete answer: bytes that arrive before the next request close the socket. */
  rest(since: number, until: number): void {
    this.isUsed = true;
    this.#expected = "nothing";
    this.restsSince = since;
    this.restsUntil = until;
    this.#kept.add(this);
  }

  /**
   * Stops reading from the provider until {@link readOn} is called (backpressure): data is buffered in the socket, then
   * at the provider. undici has a pause of its own, but a socket that ends or fails while paused crashes the process
   * with a failed assertion (7.30.2, Parser.finish in lib/dispatcher/client-h1.js), which a provider must not be able
   * to do.
   */
  hold(): void {
    this.#isHeld = true;
  }

  /** Allows reading again; does not read now. */
  unhold(): void {
    this.#isHeld = false;
  }

  /**
   * Allows reading again and reads what is buffered. Must not be called from an undici handler: undici then reads on.
   */
  readOn(): void {
    this.unhold();
    this.readMore();
  }

  /** Reads what is buffered, unless reading is on hold. */
  readMore(): void {
    this.#socket?.emit("readable");
  }

  /** Destroys the socket at once, even while it connects; resolves when an open one is closed. */
  destroy(): Promise<void> {
    this.#kept.delete(this);
    this.#isGivenUp = true;
    const closed = this.#client.destroy();
    // A Client does not have its socket until that is connected. The error also clears the connect timer.
    this.#socket?.destroy(new Error("given up"));
    return closed;
  }

  #watch(socket: Socket | undefined): void {
    this.#socket = socket;
    this.isBroken = false;
    this.isUsed = false;
    if (socket === undefined) return;
    // undici unrefs the socket after each answer and refs it for each request: two native calls for nothing, since the
    // listener keeps the process alive anyway.
    socket.ref = itself;
    socket.unref = itself;
    // undici reads a socket only with this method. Neither undici 7 nor any Node.js release line up to 26 has a public
    // way to see the bytes first: `onread` of node:net replaces reading, and only for sockets created with it.
    socket.read = (size) => this.#read(socket, size);
    socket.on("error", () => {
      this.isBroken = true;
      // After the handshake Node.js only reports TLS errors; without this, the call would wait for its deadline.
      socket.destroy();
    });
  }

  #read(socket: Socket, size: number | undefined): Buffer | null {
    // Node.js itself calls read(0), which takes nothing.
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

  /** Whether the bytes can begin an answer; empty lines may precede it. */
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

  /** Only undici's parser sees stray bytes in the same packet as the end of an answer. */
  #onDisconnect(error: Error): void {
    if (this.#expected === "nothing" && error instanceof errors.SocketError && this.#socket?.readableEnded === false) {
      this.#owner.onStray();
    }
    this.#kept.delete(this);
    this.#owner.onClosed(this, !this.#isGivenUp && !(error instanceof errors.InformationalError));
  }
}

const CR = 0x0d;
const LF = 0x0a;

/**
 * Whether bytes on an idle socket are harmless: some servers announce its closing with a 408 (RFC 9110 section 15.5.9).
 */
function isClosingNotice(chunk: Buffer): boolean {
  return /^(?:HTTP\/1\.[01] 408[ \r]|[\r\n]*$)/.test(chunk.toString("latin1", 0, 16));
}

function itself(this: Socket): Socket {
  return this;
}

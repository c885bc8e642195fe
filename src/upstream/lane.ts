import { Socket } from "node:net";
import { Client, type Dispatcher } from "undici";
import type { Connect } from "./connector.js";

/** What the sockets of one pool have in common. */
export interface LaneOptions {
  readonly connect: Connect;
  /** Header octets of an answer. */
  readonly maxHeaderBytes: number;
  readonly keepAliveTimeoutMs: number;
  /** Whether a socket carries one call only, and the request says so (`connection: close`). */
  readonly once: boolean;
}

/**
 * One socket to a provider, carrying one call at a time: an undici Client of its own, destroyed with a call that is
 * given up. A Client whose request is aborted would open a new socket for it, only to find out that it is not needed;
 * a destroyed one does not. And no request ever waits in a Client, where an answer could meet the wrong one.
 */
export class Lane {
  /** Calls with the same value may follow each other here. */
  readonly share: string;
  /** Whether it carried a call before. */
  isUsed = false;
  readonly #client: Client;
  #socket: Socket | undefined;
  #isBroken = false;

  /** @param onClosed called whenever its socket has closed. */
  constructor(origin: string, share: string, options: LaneOptions, onClosed: (lane: Lane) => void) {
    this.share = share;
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
    this.#client.on("disconnect", () => onClosed(this));
  }

  /** Whether it can carry another call: open, and its last request left entirely. */
  get isReusable(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed && this.#socket.writableLength === 0;
  }

  /** Whether the socket ended by an error, so that an answer that ends with it cannot be known to be whole. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Sends a request, or tells the handler why not. */
  send(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(request, handler);
  }

  /**
   * Takes no more from the provider until {@link readOn} is called: what it sends waits in the socket, then at the
   * provider. undici has a pause of its own, but a socket that ends or fails during it ends the process with a failed
   * assertion (7.30.2, Parser.finish in lib/dispatcher/client-h1.js): a provider must not be able to do that.
   */
  hold(): void {
    if (this.#socket !== undefined) this.#socket.read = readNothing;
  }

  /** What is waiting is read when its turn comes. */
  unhold(): void {
    if (this.#socket !== undefined) this.#socket.read = Socket.prototype.read;
  }

  /** What is waiting is read now; not to be called by a handler of undici, which reads on by itself. */
  readOn(): void {
    this.unhold();
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
    if (socket === undefined) return;
    // undici lets go of the process with each answer and holds on to it with each request: two calls into the system's
    // library for nothing, since the listener holds on to it anyway.
    socket.ref = itself;
    socket.unref = itself;
    socket.on("error", () => {
      this.#isBroken = true;
      // A TLS error after the handshake is only reported by Node.js; without this, the call would wait for its deadline.
      socket.destroy();
    });
  }
}

function itself(this: Socket): Socket {
  return this;
}

/** For undici, which asks for all there is, a socket that has nothing; what Node.js asks without a size is still asked. */
function readNothing(this: Socket, size?: number): unknown {
  return size === 0 ? Socket.prototype.read.call(this, 0) : null;
}

import type { Socket } from "node:net";
import { Client, type Dispatcher } from "undici";
import type { Connect } from "./connector.js";

/** One socket to a provider, carrying one call at a time. */
export interface Lane {
  /** Who may use the socket after its first call: calls with the same value. */
  readonly share: string;
  /** Whether it carried a call before. */
  readonly isUsed: boolean;
  /** Whether the socket ended by an error, so that an answer without a length cannot be known to be whole. */
  readonly isBroken: boolean;
  /** Whether it can carry another call: open, and its last request left entirely. */
  readonly isReusable: boolean;
  send(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void;
  /** Keeps it for another call. */
  rest(): void;
  /** Ends the socket at once, in whatever state; resolves when it is closed. */
  destroy(): Promise<void>;
}

/** What the sockets of one pool have in common. */
export interface LaneOptions {
  readonly connect: Connect;
  /** Header bytes of an answer. */
  readonly maxHeaderBytes: number;
  readonly keepAliveTimeoutMs: number;
  /** Whether the request asks for `connection: close`. */
  readonly once: boolean;
}

/**
 * Makes a lane: an undici Client of its own. A Client sends the request of an aborted call to nobody, but opens a new
 * socket for it first; a Client that is destroyed does not. So a call that is given up takes its Client with it, and a
 * Client never has a queue.
 *
 * @param onClosed called whenever its socket has closed.
 */
export function createLane(origin: string, share: string, options: LaneOptions, onClosed: (lane: Lane) => void): Lane {
  let socket: Socket | undefined;
  let isUsed = false;
  let isBroken = false;
  const client = new Client(origin, {
    ...clientOptions(options),
    connect: (dial, callback) => {
      isBroken = false;
      socket = options.connect(dial, callback);
      socket?.on("error", () => {
        isBroken = true;
      });
    },
  });
  const lane: Lane = {
    share,
    get isUsed() {
      return isUsed;
    },
    get isBroken() {
      return isBroken;
    },
    get isReusable() {
      return socket !== undefined && !socket.destroyed && socket.writableLength === 0;
    },
    send: (request, handler) => void client.dispatch(request, handler),
    rest() {
      isUsed = true;
    },
    destroy() {
      const closed = client.destroy();
      // A Client does not know its socket before it is connected. The error ends the connect timer, too.
      socket?.destroy(new Error("given up"));
      return closed;
    },
  };
  client.on("disconnect", () => onClosed(lane));
  return lane;
}

/** Timeouts of undici are off: the deadline of the call covers them, also against drips (threats P03, P04). */
function clientOptions(options: LaneOptions): Client.Options {
  return {
    pipelining: options.once ? 0 : 1,
    maxHeaderSize: 1e9,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    // A provider's Keep-Alive field may shorten the time, not lengthen it.
    keepAliveMaxTimeout: options.keepAliveTimeoutMs,
  };
}

import type { Socket } from "node:net";
import { decideProtocol, type Protocol } from "./protocol.js";

/**
 * Reads just enough of a new connection to know its protocol, puts the bytes back and calls `accept` in the same tick.
 * A connection that ends, or has not said what it is after `timeoutMs`, is destroyed.
 *
 * @param waiting holds the connection until it is decided, so that a drain can cut those that have asked for nothing.
 */
export function awaitProtocol(
  socket: Socket,
  waiting: Set<Socket>,
  timeoutMs: number,
  accept: (socket: Socket, protocol: Protocol) => void,
): void {
  const alpnProtocol = alpnProtocolOf(socket);
  let seen: Buffer = Buffer.alloc(0);
  const cut = () => socket.destroy();
  const timer = setTimeout(cut, timeoutMs);
  const settle = () => {
    clearTimeout(timer);
    waiting.delete(socket);
    socket.off("readable", read).off("end", cut).off("close", settle);
  };
  const read = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const protocol = decideProtocol(seen, alpnProtocol);
    if (protocol === undefined) return;
    settle();
    // One chunk, one unshift: both protocols then read the rest from the handle, behind the stream's back.
    socket.unshift(seen);
    accept(socket, protocol);
  };
  waiting.add(socket);
  socket.on("readable", read).on("end", cut).on("close", settle);
}

function alpnProtocolOf(socket: Socket): string | false | undefined {
  return "alpnProtocol" in socket ? (socket.alpnProtocol as string | false) : undefined;
}

import net from "node:net";

/** Bytes to send on a connection of their own, and how. */
export interface RawSend {
  /** Each as a write of its own. */
  readonly writes: readonly Buffer[];
  /** What the client does then: end its side or reset, at once or when it has an answer. */
  readonly end: "end" | "reset" | "endLater" | "resetLater";
  /** How long it waits for an answer. */
  readonly patienceMs?: number;
  /** How long the relay may take to close the connection when the client has ended its side, by what it sent. */
  readonly closeMs: (received: Buffer) => number;
}

/** What came of it. */
export interface RawOutcome {
  readonly received: Buffer;
  /** Whether the relay closed the connection within the time it has for that. */
  readonly isClosed: boolean;
}

/** Broken input may never be answered: the client then goes on after this. */
const PATIENCE_MS = 40;
/** An answer that has begun is over when nothing has come for so long. */
const QUIET_MS = 20;
/** The relay may stop reading, and what is to be sent then stays here. */
const WRITE_MS = 3_000;

/** Sends on a new connection and resolves when it is closed. */
export function exchangeRaw(port: number, send: RawSend): Promise<RawOutcome> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
    const chunks: Buffer[] = [];
    let isClosed = true;
    let timer: NodeJS.Timeout | undefined;
    const wait = (next: () => void, ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(next, ms);
    };
    const cut = () => {
      isClosed = false;
      socket.destroy();
    };
    const leave = () => {
      socket.off("data", onData).resume();
      wait(cut, send.closeMs(Buffer.concat(chunks)));
      if (send.end.startsWith("reset")) socket.resetAndDestroy();
      else socket.end();
    };
    const written = () => {
      if (!send.end.endsWith("Later")) leave();
      else wait(leave, chunks.length > 0 ? QUIET_MS : (send.patienceMs ?? PATIENCE_MS));
      isWritten = true;
    };
    let isWritten = false;
    const onData = () => {
      if (isWritten) wait(leave, QUIET_MS);
    };
    socket.on("data", (chunk: Buffer) => void chunks.push(chunk));
    socket.on("data", onData);
    socket.on("error", () => {}); // A reset is one of the ways in which the relay ends a connection: 'close' follows.
    socket.on("close", () => {
      clearTimeout(timer);
      resolve({ received: Buffer.concat(chunks), isClosed });
    });
    socket.on("connect", () => {
      wait(leave, WRITE_MS);
      writeAll(socket, send.writes.values(), written);
    });
  });
}

/** Each write in a turn of the event loop of its own, so that the relay reads them apart. */
function writeAll(socket: net.Socket, rest: IterableIterator<Buffer>, done: () => void): void {
  if (socket.destroyed || socket.writableEnded) return;
  const next = rest.next();
  if (next.done) done();
  else socket.write(next.value, () => setImmediate(writeAll, socket, rest, done));
}

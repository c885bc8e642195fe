import net from "node:net";

/** Bytes to send on a connection of their own, and how. */
export interface RawSend {
  /** Each as a write of its own. */
  readonly writes: readonly Buffer[];
  /** What the client does then: end its side or reset, at once or when it has an answer. */
  readonly end: "end" | "reset" | "endLater" | "resetLater";
  /** How long it waits for an answer. */
  readonly patienceMs?: number;
  /** An answer that has begun is over when nothing has come for so long. */
  readonly quietMs?: number | undefined;
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
const QUIET_MS = 20;
/** The relay may stop reading, and what is to be sent then stays here. */
const WRITE_MS = 3_000;

interface Exchange {
  readonly socket: net.Socket;
  readonly send: RawSend;
  readonly chunks: Buffer[];
  stage: "writing" | "waiting" | "leaving";
  timer: NodeJS.Timeout | undefined;
  isClosed: boolean;
}

/** Sends on a new connection and resolves when it is closed. */
export function exchangeRaw(port: number, send: RawSend): Promise<RawOutcome> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
    const exchange: Exchange = { socket, send, chunks: [], stage: "writing", timer: undefined, isClosed: true };
    socket.on("error", () => {}); // A reset is one of the ways in which the relay ends a connection: 'close' follows.
    socket.on("data", (chunk: Buffer) => receive(exchange, chunk));
    socket.on("close", () => {
      clearTimeout(exchange.timer);
      resolve({ received: Buffer.concat(exchange.chunks), isClosed: exchange.isClosed });
    });
    socket.on("connect", () => {
      wait(exchange, leave, WRITE_MS);
      writeAll(exchange, send.writes.values());
    });
  });
}

/** Each write in a turn of the event loop of its own, so that the relay reads them apart. */
function writeAll(exchange: Exchange, rest: IterableIterator<Buffer>): void {
  if (exchange.stage === "leaving" || exchange.socket.destroyed) return;
  const next = rest.next();
  if (next.done) waitForAnswer(exchange);
  else exchange.socket.write(next.value, () => setImmediate(writeAll, exchange, rest));
}

function waitForAnswer(exchange: Exchange): void {
  const { send, chunks } = exchange;
  exchange.stage = "waiting";
  if (send.end.endsWith("Later")) {
    wait(exchange, leave, chunks.length > 0 ? quietMs(send) : (send.patienceMs ?? PATIENCE_MS));
  } else leave(exchange);
}

function receive(exchange: Exchange, chunk: Buffer): void {
  exchange.chunks.push(chunk);
  if (exchange.stage === "waiting") wait(exchange, leave, quietMs(exchange.send));
  else if (exchange.stage === "leaving") waitForClose(exchange);
}

function quietMs(send: RawSend): number {
  return send.quietMs ?? QUIET_MS;
}

function leave(exchange: Exchange): void {
  exchange.stage = "leaving";
  waitForClose(exchange);
  if (exchange.send.end.startsWith("reset")) exchange.socket.resetAndDestroy();
  else exchange.socket.end();
}

function waitForClose(exchange: Exchange): void {
  wait(exchange, cut, exchange.send.closeMs(Buffer.concat(exchange.chunks)));
}

function cut(exchange: Exchange): void {
  exchange.isClosed = false;
  exchange.socket.destroy();
}

function wait(exchange: Exchange, next: (exchange: Exchange) => void, ms: number): void {
  clearTimeout(exchange.timer);
  exchange.timer = setTimeout(next, ms, exchange);
}

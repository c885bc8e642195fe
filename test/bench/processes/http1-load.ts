import { connect } from "node:net";
import { connect as connectSecurely } from "node:tls";
import { chooseUser, type LoadOrder } from "./load-order.js";
import type { Tally } from "./tally.js";

const HEAD_END = Buffer.from("\r\n\r\n");
/** RFC 9112 section 7.1; no content of the provider has a line break. */
const LAST_CHUNK = "0\r\n\r\n";

/**
 * One caller over HTTP/1.1: a kept-alive socket, one call after the other. It reads no more of an answer than its
 * status, its length and what must stand in it, so that the load costs less than what is measured.
 *
 * Returns what ends it.
 */
export function startHttp1Caller(order: LoadOrder, tally: Tally, onFailure: (problem: string) => void): () => void {
  const requests = order.requests.map((request) => Buffer.from(request, "base64"));
  const address = { port: order.port, host: "127.0.0.1", noDelay: true };
  const socket = order.isEncrypted ? connectSecurely({ ...address, servername: "localhost" }) : connect(address);
  let startedAt = 0;
  let pending: Buffer | undefined;
  /** Octets of the answer that are still to come, not a number for one in chunks; undefined before its head is whole. */
  let missing: number | undefined;
  /** Of an answer in chunks. */
  let lastOctets = "";
  let isOver = false;

  function send(): void {
    if (isOver) return;
    const request = requests[Math.floor(Math.random() * requests.length)] as Buffer;
    chooseUser(request, order);
    startedAt = performance.now();
    // A copy: the socket may still hold the last one.
    socket.write(Buffer.from(request));
  }

  function fail(problem: string): void {
    if (!isOver) onFailure(problem);
  }

  function onHead(chunk: Buffer): void {
    const bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
    const headEnd = bytes.indexOf(HEAD_END);
    const head = bytes.toString("latin1", 0, headEnd === -1 ? bytes.length : headEnd);
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    const bodyStart = headEnd + HEAD_END.length;
    if (headEnd === -1 || bytes.length < bodyStart + Math.min(Number(length), 512)) {
      pending = bytes;
      return;
    }
    pending = undefined;
    const isFramed = length !== undefined || /\r\ntransfer-encoding: chunked/i.test(head);
    if (!head.startsWith("HTTP/1.1 200") || !isFramed || !bytes.includes(order.expected)) {
      fail(`not the answer that was expected: ${bytes.toString("latin1", 0, 600)}`);
      return;
    }
    missing = length === undefined ? Number.NaN : bodyStart + Number(length) - bytes.length;
  }

  /** Whether the answer has ended. */
  function isWhole(chunk: Buffer): boolean {
    if (!Number.isNaN(missing)) return missing === 0;
    lastOctets = (lastOctets + chunk.toString("latin1", Math.max(0, chunk.length - LAST_CHUNK.length))).slice(
      -LAST_CHUNK.length,
    );
    return lastOctets === LAST_CHUNK;
  }

  socket.on(order.isEncrypted ? "secureConnect" : "connect", send);
  socket.on("data", (chunk: Buffer) => {
    if (missing === undefined) onHead(chunk);
    else missing -= chunk.length;
    if (!isWhole(chunk)) return;
    missing = undefined;
    lastOctets = "";
    tally.count(startedAt);
    if (order.pauseMs === 0) send();
    else setTimeout(send, order.pauseMs);
  });
  socket.on("error", (error) => fail(error.message));
  // The relay ends a connection after many calls; a caller opens another one, as every client does.
  socket.on("close", () => {
    if (isOver || missing !== undefined || pending !== undefined) return;
    isOver = true;
    end = startHttp1Caller(order, tally, onFailure);
  });

  let end = (): void => {
    socket.destroy();
  };
  return () => {
    isOver = true;
    end();
  };
}

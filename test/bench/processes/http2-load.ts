import { type ClientHttp2Session, connect } from "node:http2";
import { chooseUser, type LoadOrder } from "./load-order.js";
import type { Tally } from "./tally.js";

const CALLERS_PER_SESSION = 64;

/** Callers over HTTP/2, one call after the other on streams of a few connections. Returns what ends them. */
export function startHttp2Callers(order: LoadOrder, tally: Tally, onFailure: (problem: string) => void): () => void {
  const sessions: ClientHttp2Session[] = [];
  let isOver = false;
  const fail = (problem: string) => {
    if (!isOver) onFailure(problem);
  };
  for (let caller = 0; caller < order.callers; caller++) {
    if (caller % CALLERS_PER_SESSION === 0) {
      const opened = connect(`http://127.0.0.1:${order.port}`);
      opened.on("error", (error) => fail(error.message));
      sessions.push(opened);
    }
    call(sessions.at(-1) as ClientHttp2Session, Buffer.from(order.requests[0] ?? "", "base64"));
  }

  function call(session: ClientHttp2Session, request: Buffer): void {
    if (isOver) return;
    chooseUser(request, order);
    const startedAt = performance.now();
    const stream = session.request({ ":method": "POST", ...order.headers });
    let isExpected = false;
    let status: unknown;
    stream.on("data", (chunk: Buffer) => {
      isExpected ||= chunk.includes(order.expected);
    });
    stream.on("trailers", (trailers) => {
      status = trailers["grpc-status"];
    });
    stream.on("error", (error) => fail(error.message));
    stream.on("end", () => {
      if (!isExpected || status !== "0") return fail(`grpc-status ${String(status)}, or not the answer expected`);
      tally.count(startedAt);
      call(session, request);
    });
    stream.end(Buffer.from(request));
  }

  return () => {
    isOver = true;
    for (const session of sessions) session.destroy();
  };
}

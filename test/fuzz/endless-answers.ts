import type { Socket } from "node:net";
import type { Play } from "./wire-provider.js";

/** A provider that does not come to an end by itself, and what the call must end as. */
export interface EndlessAnswer {
  readonly name: string;
  readonly play: Play;
  readonly errorType: string;
}

const EVERY_MS = 20;
const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";

/** Threats P01 to P05: each takes a call's whole deadline, or is cut by a limit. */
export const ENDLESS_ANSWERS: readonly EndlessAnswer[] = [
  { name: "silence", play: () => {}, errorType: "PROVIDER_TIMEOUT" },
  { name: "half a head", play: (socket) => void socket.write(HEAD), errorType: "PROVIDER_TIMEOUT" },
  {
    name: "half a body",
    play: (socket) => void socket.write(`${HEAD}Content-Length: 9\r\n\r\nx`),
    errorType: "PROVIDER_TIMEOUT",
  },
  { name: "a drip of fields", play: drip(HEAD, "X-A: 1\r\n"), errorType: "PROVIDER_TIMEOUT" },
  { name: "a drip of body", play: drip(`${HEAD}\r\n`, "x"), errorType: "PROVIDER_TIMEOUT" },
  {
    name: "a drip of chunks",
    play: drip(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`, "1\r\nx\r\n"),
    errorType: "PROVIDER_TIMEOUT",
  },
  {
    name: "a drip of 103",
    // Eight at once: a busy machine passes the limit of 16 before the deadline, too.
    play: drip("", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(8)),
    errorType: "PROVIDER_RESPONSE_INVALID",
  },
  {
    name: "a flood of 103",
    play: flood("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
    errorType: "PROVIDER_RESPONSE_INVALID",
  },
  { name: "a flood of fields", play: flood(HEAD, "X-A: 1\r\n"), errorType: "PROVIDER_RESPONSE_INVALID" },
  { name: "a flood of body", play: flood(`${HEAD}\r\n`, "x"), errorType: "RESPONSE_TOO_LARGE" },
  {
    name: "a flood of chunks",
    play: flood(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`, "1\r\nx\r\n"),
    errorType: "RESPONSE_TOO_LARGE",
  },
];

function drip(head: string, piece: string): Play {
  return (socket) => {
    socket.write(head);
    const timer = setInterval(() => void socket.write(piece), EVERY_MS);
    socket.on("close", () => clearInterval(timer));
  };
}

/** As fast as the relay reads; in large writes, so that a busy machine comes to the limit before the deadline, too. */
function flood(head: string, piece: string): Play {
  const pieces = piece.repeat(Math.ceil(65_536 / piece.length));
  return (socket) => {
    socket.write(head);
    pour(socket, pieces);
  };
}

function pour(socket: Socket, pieces: string): void {
  if (!socket.destroyed) socket.write(pieces, () => setImmediate(pour, socket, pieces));
}

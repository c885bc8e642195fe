import { connect } from "node:net";
import { getPriority, setPriority } from "node:os";
import { answer, type Play, type RawProvider, startRawProvider } from "../support/raw-provider.js";
import { startHostileCallers } from "./hostile-providers.js";

/** What the parent says once it has a relay with these providers. */
export interface Target {
  readonly url: string;
  readonly port: number;
  readonly publicKey: string;
}

const MIB = 1024 * 1024;
const JSON_TYPE = "Content-Type: application/json";
const HUGE = answer(Buffer.from(JSON.stringify("x".repeat(9 * MIB))), JSON_TYPE);
const ALMOST_TOKENS = answer(Buffer.from(JSON.stringify("a".repeat(MIB))), JSON_TYPE);

/** Answers that cost whoever takes them: bytes that drip, huge ones, ones that are hard to redact, and resets. */
const PLAYS: Readonly<Record<string, Play>> = {
  drip: (socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    const timer = setInterval(() => socket.write("x"), 200);
    socket.on("close", () => clearInterval(timer));
  },
  huge: (socket) => socket.write(HUGE),
  redact: (socket) => socket.write(ALMOST_TOKENS),
  reset: (socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    setTimeout(() => socket.resetAndDestroy(), 5);
  },
};

const CALLERS_EACH = 10;
const UNREAD = 40;
const FLOODS = 10;
const PIPELINED = 20_000;
const AGAIN_MS = 1000;

/** A process of its own, so that what it does costs the measured calls nothing but what it costs the relay. */
async function main(): Promise<void> {
  // As if it were another machine: it may have what the relay and the measured calls leave of this one.
  setPriority(getPriority() + 10);
  const providers: Record<string, RawProvider> = {};
  for (const [name, play] of Object.entries(PLAYS)) providers[name] = await startRawProvider(play);
  const origins = Object.fromEntries(Object.entries(providers).map(([name, { origin }]) => [name, origin]));
  process.once("message", (target) => attack(target as Target, origins));
  process.send?.(origins);
}

function attack(target: Target, origins: Readonly<Record<string, string>>): void {
  for (const [name, origin] of Object.entries(origins)) startHostileCallers(target, name, origin, CALLERS_EACH);
  const huge = requestOf(target, "huge", JSON.stringify({ url: `${origins["huge"]}/`, method: "GET" }));
  for (let at = 0; at < UNREAD; at++) keepOpen(target.port, huge, { reads: false });
  // Refused, and each of them a line of the log.
  const flood = requestOf(target, "nobody", "{}").repeat(PIPELINED);
  for (let at = 0; at < FLOODS; at++) keepOpen(target.port, flood, { reads: true });
}

function requestOf({ publicKey }: Target, provider: string, body: string): string {
  const path = `/oauth/method/${provider}/call?user_id=u&public_key=${publicKey}`;
  return `POST ${path} HTTP/1.1\r\nHost: relay\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** Sends all of it at once, and again on another connection when this one is closed. */
function keepOpen(port: number, text: string, { reads }: { readonly reads: boolean }): void {
  const socket = connect(port, "127.0.0.1", () => socket.write(text));
  if (reads) socket.resume();
  // A reset: 'close' follows.
  socket.on("error", () => {});
  socket.on("close", () => setTimeout(() => keepOpen(port, text, { reads }), AGAIN_MS));
}

await main();

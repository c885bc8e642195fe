import { ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { HttpResponse } from "./exchange.js";

/** Whoever answers ends the answer when nothing moves. */
const SELF_LIMITED = Symbol("self-limited");

interface Marked {
  [SELF_LIMITED]?: true;
}

/**
 * Takes an answer out of the time limits of the listener until it is ended: it may take as long as it likes, and its
 * handler sees to it that a client which takes nothing is cut off.
 */
export function leaveToHandler(response: HttpResponse): void {
  const answer = response instanceof ServerResponse ? response : response.stream;
  (answer as Marked)[SELF_LIMITED] = true;
}

/** Whether it is the handler's to end just now. */
export function isLeftToHandler(answer: ServerResponse | ServerHttp2Stream): boolean {
  return (answer as Marked)[SELF_LIMITED] === true && !answer.writableEnded;
}

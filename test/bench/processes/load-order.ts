/** What the load process is asked to do. */
export interface LoadOrder {
  readonly protocol: "http1" | "http2";
  readonly port: number;
  /** HTTP/1 only. */
  readonly isEncrypted: boolean;
  /** HTTP/1: whole requests, of which each call is one at random. HTTP/2: one message. Base64. */
  readonly requests: readonly string[];
  /** HTTP/2 only. */
  readonly headers: Readonly<Record<string, string>>;
  /** Where the seven digits of the user's number stand in each request; undefined when it names no user. */
  readonly userAt: number | undefined;
  /** Users to choose from at random. */
  readonly users: number;
  /** So many users follow them whose tokens have ended: one call in a hundred is the next one's. */
  readonly endedUsers: number;
  /** What must stand in the first piece of every answer. */
  readonly expected: string;
  /** Calls at once, each caller with one after the other. */
  readonly callers: number;
  /** Between a caller's calls. */
  readonly pauseMs: number;
  readonly warmMs: number;
  readonly ms: number;
}

/** What the load process tells: that the time has begun, and what was done in it. */
export type LoadNotice =
  | { readonly notice: "begun" }
  | {
      readonly notice: "ended";
      readonly calls: number;
      readonly seconds: number;
      readonly p50Us: number;
      readonly p99Us: number;
    }
  | { readonly notice: "failed"; readonly problem: string };

const DIGITS = 7;

const ENDED_SHARE = 0.01;
/** Of all orders: a user whose token is refreshed has ended no more. */
let ended = 0;

/** Writes a random user's number into a request. */
export function chooseUser(request: Buffer, { userAt, users, endedUsers }: LoadOrder): void {
  if (userAt === undefined) return;
  const isEnded = endedUsers > 0 && Math.random() < ENDED_SHARE;
  let rest = isEnded ? users + (ended++ % endedUsers) : Math.floor(Math.random() * users);
  for (let at = userAt + DIGITS - 1; at >= userAt; at--) {
    request[at] = 0x30 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
}

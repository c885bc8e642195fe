/** What the load process is asked to do. */
export interface LoadOrder {
  readonly protocol: "http1" | "http2";
  readonly port: number;
  /** HTTP/1: the whole request. HTTP/2: the message. Base64. */
  readonly request: string;
  /** HTTP/2 only. */
  readonly headers: Readonly<Record<string, string>>;
  /** Where the seven digits of the user's number stand in the request; undefined when it names no user. */
  readonly userAt: number | undefined;
  /** Users to choose from at random. */
  readonly users: number;
  /** What must stand in the first piece of every answer. */
  readonly expected: string;
  /** Calls at once, each caller with one after the other. */
  readonly callers: number;
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

/** Writes a random user's number into a request. */
export function chooseUser(request: Buffer, { userAt, users }: LoadOrder): void {
  if (userAt === undefined) return;
  let rest = Math.floor(Math.random() * users);
  for (let at = userAt + DIGITS - 1; at >= userAt; at--) {
    request[at] = 0x30 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
}

import type { ContentKind } from "./processes/content.js";

/** How a point's calls are made. */
type Wire = "json" | "via" | "grpc" | "connect" | "connect-json";

/** Who can be measured: the relay, with a store of either size or kind, and what could stand in its place. */
type OwnName =
  | "bare"
  | "fastify"
  | "http-proxy"
  | "grpc-js"
  | "relay"
  | "relay-quiet"
  | "relay-unrested"
  | "relay-traced"
  | "relay-refreshing"
  | "relay-workers"
  | "relay-administered"
  | "relay-administered-workers"
  | "relay-postgres"
  | "relay-million"
  | "relay-postgres-million"
  | "direct";

/** One of them, or the same of another commit. */
export type SubjectName = OwnName | `${OwnName}-compared`;

/** The same of another commit. */
export function comparedTo(name: SubjectName): SubjectName {
  return `${ownNameOf(name)}-compared`;
}

/** Whether it is of another commit. */
export function isCompared(name: SubjectName): boolean {
  return name.endsWith("-compared");
}

/** What it is, of whichever commit. */
export function ownNameOf(name: SubjectName): OwnName {
  return name.replace("-compared", "") as OwnName;
}

/** How the provider is reached, with TLS 1.3 but for `http`, and whether the callers use TLS. Each is a process of its own. */
export interface Setup {
  /** `far`: 20 ms there and back. */
  readonly provider: "http" | "https" | "far";
  readonly callers: "plain" | "tls";
}

/**
 * Measured only when named: the relay with everything off that can be switched off and only tells of calls, without the
 * rest of the provider's sockets, and with traces on and an SDK that takes one call in a hundred.
 */
export const ON_DEMAND: ReadonlySet<SubjectName> = new Set(["relay-quiet", "relay-unrested", "relay-traced"]);

/** Measured only with `--large-store`: making 1,000,000 connections takes a while. */
export const LARGE: ReadonlySet<SubjectName> = new Set(["relay-million", "relay-postgres-million"]);

/** One kind of work, done by several subjects. */
export interface Point extends Setup {
  readonly name: string;
  readonly wire: Wire;
  readonly content: ContentKind;
  /** Bytes of an answer; each call asks for one of these at random. */
  readonly sizes: readonly number[];
  readonly concurrency: number;
  /** Between a caller's calls, in milliseconds. */
  readonly pauseMs: number;
  /** `stranger`: a user without a connection, so that the answer is an error row. */
  readonly user: "connected" | "stranger";
  readonly mode: "data" | "body";
  /** Whose calls: of all users, or of one, with a call token or without. */
  readonly caller: "all-users" | "one-user" | "call-token";
  readonly subjects: readonly SubjectName[];
  /** The point and subject that the ratio is taken to. */
  readonly base: { readonly point: string; readonly subject: SubjectName };
  /** What the relay's CPU per call is meant to be at most, as a ratio to the base. */
  readonly target: number | undefined;
}

const KIB = 1024;
const MIB = 1024 * KIB;

/** Everything that can be measured, in the order of the report. */
export const POINTS: readonly Point[] = [
  json("json-1k", 1 * KIB, 32, 1.25, [
    "direct",
    "bare",
    "http-proxy",
    "fastify",
    "relay",
    "relay-quiet",
    "relay-unrested",
    "relay-traced",
  ]),
  json("json-1k-1-caller", 1 * KIB, 1, undefined, ["direct", "bare", "http-proxy", "relay"]),
  json("json-1k-256-callers", 1 * KIB, 256, undefined, ["direct", "bare", "relay"]),
  json("json-100k", 100 * KIB, 32, 2, ["direct", "bare", "http-proxy", "fastify", "relay"]),
  json("json-10m", 10 * MIB, 4, 2, ["direct", "bare", "http-proxy", "fastify", "relay"]),
  { ...json("binary-1k", 1 * KIB, 32, undefined, ["bare", "relay"]), content: "binary" },
  {
    ...json("error-row", 1 * KIB, 32, undefined, ["relay"]),
    user: "stranger",
    base: { point: "json-1k", subject: "bare" },
  },
  {
    ...json("json-1k-1-user", 1 * KIB, 32, undefined, ["relay"]),
    caller: "one-user",
    base: { point: "json-1k", subject: "relay" },
  },
  {
    ...json("json-1k-call-token", 1 * KIB, 32, 1.05, ["relay"]),
    caller: "call-token",
    base: { point: "json-1k-1-user", subject: "relay" },
  },
  via("via-1k", 1 * KIB, 32, 1, { point: "json-1k-call-token", subject: "relay" }),
  via("via-10m", 10 * MIB, 4, 1.3, { point: "via-10m", subject: "http-proxy" }),
  typed("grpc-body-1k", "grpc", "body", 1),
  typed("grpc-data-1k", "grpc", "data", undefined),
  typed("connect-body-1k", "connect", "body", 1.5),
  typed("connect-data-1k", "connect", "data", undefined),
  typed("connect-json-body-1k", "connect-json", "body", 1.5),
  typed("connect-json-data-1k", "connect-json", "data", undefined),
  ...(["plain", "tls"] as const).map((callers): Point => {
    const name = callers === "plain" ? "json-1k-https" : "json-1k-https-both";
    const point = json(name, 1 * KIB, 32, 0.9, ["direct", "bare", "http-proxy", "relay"]);
    return { ...point, provider: "https", callers, base: { point: name, subject: "http-proxy" } };
  }),
  {
    ...json("json-mixed", 1 * KIB, 32, undefined, ["direct", "bare", "http-proxy", "relay"]),
    sizes: [1, 1, 1, 1, 1, 1, 10, 10, 10, 100].map((kib) => kib * KIB),
  },
  ...[10, 60].map((seconds): Point => {
    const point = json(`pause-${seconds}s`, 1 * KIB, 32, undefined, ["direct", "bare", "http-proxy", "relay"]);
    return { ...point, provider: "far", pauseMs: seconds * 1000 };
  }),
  {
    ...json("refreshes-1k", 1 * KIB, 32, undefined, ["relay-refreshing"]),
    base: { point: "json-1k", subject: "relay" },
  },
  {
    ...json("workers-1k", 1 * KIB, 32, undefined, ["relay-workers"]),
    base: { point: "json-1k", subject: "relay" },
  },
  {
    ...json("postgres-1k", 1 * KIB, 32, 1.2, ["relay-postgres"]),
    base: { point: "json-1k", subject: "relay" },
  },
  {
    ...json("million-1k", 1 * KIB, 32, 1.15, ["relay-million"]),
    base: { point: "json-1k", subject: "relay" },
  },
  {
    ...json("postgres-million-1k", 1 * KIB, 32, 1.3, ["relay-postgres-million"]),
    base: { point: "json-1k", subject: "relay" },
  },
];

function json(
  name: string,
  bytes: number,
  concurrency: number,
  target: number | undefined,
  subjects: readonly SubjectName[],
): Point {
  const base = { point: name, subject: "bare" } as const;
  return {
    name,
    wire: "json",
    content: "json",
    sizes: [bytes],
    concurrency,
    pauseMs: 0,
    provider: "http",
    callers: "plain",
    user: "connected",
    mode: "data",
    caller: "all-users",
    subjects,
    base,
    target,
  };
}

/** The pass-through of one user's call token: small against the JSON route with one, large against a plain proxy. */
function via(name: string, bytes: number, concurrency: number, target: number, base: Point["base"]): Point {
  const point = json(name, bytes, concurrency, target, ["direct", "bare", "http-proxy", "relay"]);
  return { ...point, wire: "via", caller: "call-token", base };
}

/** gRPC against the relay written by hand, Connect against the JSON route. */
function typed(
  name: string,
  wire: Exclude<Wire, "json" | "via">,
  mode: Point["mode"],
  target: number | undefined,
): Point {
  const isGrpc = wire === "grpc";
  return {
    ...json(name, 1 * KIB, 32, target, isGrpc ? ["grpc-js", "relay"] : ["relay"]),
    wire,
    mode,
    base: isGrpc ? { point: name, subject: "grpc-js" } : { point: "json-1k", subject: "relay" },
  };
}

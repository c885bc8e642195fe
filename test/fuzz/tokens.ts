import { fromJsonString, toJson } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import fc from "fast-check";
import { CallRequestSchema, CallResponseSchema, RelayService } from "../../gen/relay/v1/relay_pb.js";
import { signCallToken } from "../support/call-tokens.js";
import { createCallers, type ScenarioCall } from "../support/callers.js";
import { createStreamCallers, STREAM_TRANSPORTS } from "../support/stream-callers.js";
import { type Bench, startBench, type Worker } from "./bench.js";
import { type Campaign, mustHold } from "./campaign.js";
import { explore, joined } from "./explore.js";
import { isInside, methodsReadFrom, readingsOf } from "./path-readings.js";
import { type TokenInput, tokenInputs } from "./token-inputs.js";

const WORKERS = 8;

/** How a call ended: the errorType, or undefined when the provider was asked. */
type Ask = (call: ScenarioCall) => Promise<string | undefined>;

/**
 * Half of the inputs are pairs of call tokens, one good and one broken in one way, over every surface in turn. The other
 * half are paths and queries in every spelling, within rules: what arrives at the provider must not be readable as
 * anything that is outside of the rule.
 */
export const fuzzTokens: Campaign = async ({ count, seed }) => {
  const bench = await startBench({ workers: WORKERS });
  const surfaces = createAsks(bench.harness.url);
  const half = Math.ceil(count / 2);
  let turn = 0;
  const inputs = bench.workers.map(({ userId }) => tokenInputs(bench.application, userId));
  const ofWorkers = fc.tuple(...inputs) as unknown as fc.Arbitrary<readonly TokenInput[]>;
  const tokens = await explore(
    ofWorkers,
    (each, at) => checkToken(bench, bench.workers[at] as Worker, each[at] as TokenInput, surfaces, turn++),
    { count: half, seed, workers: WORKERS },
  );
  const reached = new Map<string, number>();
  const paths = await explore(
    targets,
    (input, at) => checkTarget(bench, bench.workers[at] as Worker, input, surfaces, turn++, reached),
    { count: count - half, seed, workers: WORKERS },
  );
  const result = await bench.finish(joined(tokens, paths));
  const told = [...reached].map(([what, times]) => `${times} ${what}`).join(", ");
  return { ...result, notes: [...result.notes, `${surfaces.length} surfaces; of the paths ${told}`] };
};

function createAsks(url: string): ReadonlyArray<readonly [surface: string, ask: Ask]> {
  const [rest] = createCallers(url);
  const restAsk: Ask = async (call) => errorTypeOf(await rest?.[1](call));
  const unary = STREAM_TRANSPORTS.map(([name, transport]) => [name, unaryAsk(transport(url))] as const);
  const streams = createStreamCallers(url)
    .filter(([name]) => name !== "raw HTTP/2")
    .map(([name, caller]): readonly [string, Ask] => [
      `stream, ${name}`,
      async (call) => errorTypeOf((await caller(call)).row),
    ]);
  return [["REST", restAsk], ...unary, ...streams];
}

function unaryAsk(transport: Transport): Ask {
  const client = createClient(RelayService, transport);
  return async ({ outerHeaders = {}, ...call }) => {
    const answer = await client.call(fromJsonString(CallRequestSchema, JSON.stringify(call)), {
      headers: outerHeaders,
    });
    const { rows = [] } = toJson(CallResponseSchema, answer) as { rows?: readonly object[] };
    return errorTypeOf(rows[0]);
  };
}

function errorTypeOf(row: object | undefined): string | undefined {
  return (row as { readonly errorType?: string } | undefined)?.errorType;
}

function callWith(bench: Bench, callToken: string, target: string): ScenarioCall {
  return {
    providerName: "wire",
    userId: "",
    publicKey: "",
    outerHeaders: { authorization: `Bearer ${callToken}` },
    call: { url: `http://127.0.0.1:${bench.provider.port}${target}`, method: "GET" },
  };
}

const REFUSALS = /^(?:CALLER_NOT_ALLOWED|CALL_NOT_PERMITTED|INVALID_PUBLIC_KEY|CALL_FORMAT_ERROR)$/;

async function checkToken(
  bench: Bench,
  worker: Worker,
  { valid, broken, how }: TokenInput,
  surfaces: ReturnType<typeof createAsks>,
  turn: number,
): Promise<void> {
  const [surface, ask] = surfaces[turn % surfaces.length] as (typeof surfaces)[number];
  const taken = await ask(callWith(bench, valid, "/a/b/c"));
  mustHold(taken === undefined, `${surface} refused a good token: ${taken}`);
  mustHold(bench.provider.take(worker.token).length === 1, `${surface} did not call with a good token`);
  if (broken === valid) return;
  const refused = await ask(callWith(bench, broken, "/a/b/c"));
  mustHold(refused !== undefined && REFUSALS.test(refused), `${surface} took a token although ${how}: ${refused}`);
  mustHold(bench.provider.take(worker.token).length === 0, `${surface} called although ${how}`);
}

/** A target as a caller writes it, and the rule that it is tried against. */
interface TargetInput {
  readonly pattern: string;
  readonly target: string;
}

const PATTERNS = ["/repos/acme/**", "/repos/acme/*", "/a/*/c", "/user/**", "/**/public", "/items/*/"];
/** In front of a segment: what some server or other takes for a slash, or for none. */
const JOINTS = [
  "//",
  "%2f",
  "%2F",
  "%252f",
  "%25252f",
  "%5c",
  "%255C",
  ";",
  "%3b",
  "/;",
  "/./",
  "/../",
  "/%2e/",
  "/.%2e/",
  "/%252e%252e/",
  "/..;/",
  "%u002f",
  "%c0%af",
  "%EF%BC%8F",
  "%E2%81%84",
  "%00",
  "%23",
  "%3f",
  "%0a",
  "%09",
];
const PLAIN_SEGMENTS = ["repos", "acme", "a", "c", "b", "user", "public", "items", "other", "secret"];
const SEGMENTS = [
  "REPOS",
  "Acme",
  "%72epos",
  "acm%65",
  "acme;v=1",
  ";",
  "..",
  ".",
  "...",
  "%2e%2e",
  "..%20",
  "..%00",
  "",
  "%20",
  "+",
  "x%2f..",
  "x%2f..%2f..%2fsecret",
  "%252e%252e",
  "..%252f",
  "é",
  "%C3%A9",
  "{id}",
  "*",
  "**",
  "x.json",
  "a:b",
  "%u002e%u002e",
  "%c0%ae%c0%ae",
  "%EF%BC%8E%EF%BC%8E",
  ".%E2%80%8B.",
  "..\u00ad",
];
const QUERIES = [
  "?_method=DELETE",
  "?%5fmethod=DELETE",
  "?a=1;_method=PUT",
  "?.method=PATCH",
  "?_method[]=DELETE",
  "?_method=%44ELETE",
  "?%255fmethod=POST",
  "?+_method=DELETE",
  "?X-HTTP-Method-Override=PUT",
  "?_method=GET",
  "?method=list",
  "?x=/../..",
  "?%6dethod=dele%74e",
];

/** One odd thing among plain ones says more than many. */
function mostly<Item>(plain: readonly Item[], odd: readonly Item[]): fc.Arbitrary<Item> {
  return fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...plain) },
    { weight: 1, arbitrary: fc.constantFrom(...odd) },
  );
}

/** A path that begins as the pattern does, more often than not. */
const targets: fc.Arbitrary<TargetInput> = fc
  .record({
    pattern: fc.constantFrom(...PATTERNS),
    isNear: mostly([true], [false]),
    pieces: fc.array(fc.tuple(mostly(["/"], JOINTS), mostly(PLAIN_SEGMENTS, SEGMENTS)), { maxLength: 6 }),
    tail: mostly(["", "/c", "/public"], ["/", "%2f", ";x", "/."]),
    query: mostly(["", "?a=b"], QUERIES),
  })
  .map(({ pattern, isNear, pieces, tail, query }) => {
    const start = isNear ? pattern.replace(/\/\*.*$/, "") : "";
    const path = start + pieces.map(([joint, segment]) => joint + segment).join("") + tail;
    return { pattern, target: (path.startsWith("/") ? path : `/${path}`) + query };
  });

const PLAIN = /^(?:\/[A-Za-z0-9_-]+)+$/;

async function checkTarget(
  bench: Bench,
  worker: Worker,
  { pattern, target }: TargetInput,
  surfaces: ReturnType<typeof createAsks>,
  turn: number,
  reached: Map<string, number>,
): Promise<void> {
  const [surface, ask] = surfaces[turn % surfaces.length] as (typeof surfaces)[number];
  const claims = { sub: worker.userId, rules: [{ methods: ["GET"], paths: [pattern] }] };
  const refused = await ask(callWith(bench, signCallToken(bench.application, { claims }), target));
  const requests = bench.provider.take(worker.token);
  const what = refused ?? "let through";
  reached.set(what, (reached.get(what) ?? 0) + 1);
  mustHold((refused === undefined) === (requests.length === 1), `${surface} says ${what}, and sent ${requests.length}`);
  if (PLAIN.test(target))
    mustHold((refused === undefined) === isInside(pattern, target), `${surface} says ${what} for ${pattern}`);
  for (const request of requests) {
    const [path = "", query = ""] = request.target.split(/\?(.*)/s);
    for (const reading of readingsOf(path)) {
      mustHold(
        isInside(pattern, reading),
        `${surface} let ${JSON.stringify(path)} through ${pattern}, which is also ${JSON.stringify(reading)}`,
      );
    }
    for (const method of methodsReadFrom(query))
      mustHold(method === "GET", `${surface} let ?${query} through, which is ${method}`);
  }
}

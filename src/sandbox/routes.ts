import { createHash } from "node:crypto";
import { STATUS_CODES } from "node:http";
import { pipeline, Readable } from "node:stream";
import { brotliCompressSync, createGzip, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import {
  type Authorization,
  anyRoute,
  decideAuthorization,
  ECHO_ROUTES,
  ECHO_TOKEN_ROUTES,
  getRoute,
  type ResourceRequest,
  type ResourceRoute,
  TIMING_ROUTES,
  WELL_KNOWN_API_ROUTES,
} from "./echo-routes.js";
import { InvalidParameter, integerParameter, parseInteger } from "./grants.js";
import { createOAuthRoutes, type OAuthServer } from "./oauth-routes.js";
import { createPreparedContent, SAMPLE_TEXTS } from "./prepared-content.js";
import {
  type Answer,
  callRoute,
  contentAnswer,
  createRouter,
  emptyAnswer,
  errorAnswer,
  jsonAnswer,
  parseTarget,
  type RequestLog,
  SandboxRequest,
  type SandboxRequestFields,
} from "./router.js";

/** Notes a request in the log and decides its answer. Throws what a handler throws. */
export type Respond = (fields: Omit<SandboxRequestFields, "authorized">) => Answer | Promise<Answer>;

/** Puts the authorization server and the resource API behind one function. */
export function createRespond(origin: string, server: OAuthServer, log: RequestLog): Respond {
  const findOAuthRoute = createRouter(createOAuthRoutes(server));
  const findResourceRoute = createRouter(createResourceRoutes(origin));
  return (fields) => {
    const authorization = decideAuthorization(fields.rawHeaders, server.grants.findAccount);
    const received = new SandboxRequest({ ...fields, authorized: authorization.result === "authorized" });
    log.add(received);
    const routed = { received, ...parseTarget(fields.target) };
    const oauthRoute = findOAuthRoute(routed.path);
    if (oauthRoute !== undefined) return callRoute(oauthRoute, routed);
    if (authorization.result === "refused") return authorization.answer;
    return callRoute(findResourceRoute(routed.path), { ...routed, ...withoutResult(authorization) });
  };
}

function withoutResult({ accessToken, account }: Authorization & { result: "authorized" }) {
  return { accessToken, account };
}

/** The account's own resources: a profile and a list. */
const ACCOUNT_ROUTES: readonly ResourceRoute[] = [getRoute("/me", answerMe), getRoute("/items", answerItems)];

function answerMe({ account }: ResourceRequest) {
  return jsonAnswer(JSON.stringify({ sub: account.id, ...account }));
}

function answerItems({ query }: ResourceRequest) {
  const count = integerParameter(query, "count", { fallback: 3, min: 0, max: 10_000 });
  const items = Array.from({ length: count }, (_, index) => ({ id: index + 1, name: `Item ${index + 1}` }));
  return jsonAnswer(JSON.stringify(items));
}

/** The route table of the resource API: everything that takes an access token. `origin` is the sandbox's own. */
function createResourceRoutes(origin: string): readonly ResourceRoute[] {
  return [
    ...ACCOUNT_ROUTES,
    ...WELL_KNOWN_API_ROUTES,
    ...ECHO_ROUTES,
    ...ECHO_TOKEN_ROUTES,
    ...STATUS_ROUTES,
    ...createFieldRoutes(origin),
    ...TIMING_ROUTES,
    ...createContentRoutes(),
    ...createCodingRoutes(),
  ];
}

/** Statuses, redirects and answers without content. */
const STATUS_ROUTES: readonly ResourceRoute[] = [
  anyRoute("/status/*", answerStatus),
  getRoute("/redirect", answerRedirect),
  getRoute("/no-content", () => emptyAnswer(204)),
  getRoute("/empty", () => emptyAnswer(200, ["Content-Type", "application/json"])),
];

/** https://www.rfc-editor.org/rfc/rfc9110#section-15: answers that have no content. */
const WITHOUT_CONTENT = new Set([204, 205, 304]);

function answerStatus({ path, query }: ResourceRequest): Answer {
  // 1xx is never a final answer (RFC 9110 section 15.2).
  const statusCode = parseInteger(path.slice("/status/".length), "status", { min: 200, max: 999 });
  if (WITHOUT_CONTENT.has(statusCode)) return emptyAnswer(statusCode);
  const message = STATUS_CODES[statusCode] ?? "Unassigned";
  return jsonAnswer(query.get("body") ?? JSON.stringify({ status: statusCode, message }), statusCode);
}

function answerRedirect({ query }: ResourceRequest): Answer {
  const to = query.get("to");
  if (to === null) throw new InvalidParameter("to", "given: the value of Location");
  const statusCode = integerParameter(query, "status", { fallback: 302, min: 300, max: 399 });
  return emptyAnswer(statusCode, ["Location", to]);
}

/** JSON under a content coding (RFC 9110 section 8.4), whatever Accept-Encoding says. */
function createCodingRoutes(): readonly ResourceRoute[] {
  return [
    codingRoute("/gzip", "gzip", gzipSync),
    codingRoute("/br", "br", brotliCompressSync),
    codingRoute("/deflate", "deflate", deflateSync),
    // What some servers send as deflate: without the zlib wrapper that RFC 9110 section 8.4.1.2 asks for.
    codingRoute("/deflate-raw", "deflate", deflateRawSync),
    getRoute("/gzip-bomb", answerGzipBomb),
  ];
}

function codingRoute(path: string, coding: string, encode: (content: Buffer) => Buffer): ResourceRoute {
  const json = `{"path":"${path}","id":9007199254740993,"text":"${"Grüße ".repeat(40)}"}`;
  const answer = contentAnswer("application/json", encode(Buffer.from(json)), 200, ["Content-Encoding", coding]);
  return getRoute(path, () => answer);
}

const MIB = 1024 * 1024;

function answerGzipBomb({ query }: ResourceRequest): Answer {
  const mib = integerParameter(query, "mib", { fallback: 100, min: 1, max: 4096 });
  return {
    statusCode: 200,
    fields: ["Content-Type", "application/json", "Content-Encoding", "gzip"],
    // Compressed as it is sent, off the event loop. A failure here means that the client left.
    body: () => pipeline(Readable.from(blankArray(mib)), createGzip(), () => {}),
  };
}

/** A valid JSON array of exactly `mib` MiB that holds nothing. */
function* blankArray(mib: number): Generator<Buffer> {
  const blanks = Buffer.alloc(MIB, " ");
  for (let sent = 0; sent < mib; sent++) {
    const first = sent === 0;
    const last = sent === mib - 1;
    yield first || last ? bracketed(blanks, first, last) : blanks;
  }
}

function bracketed(blanks: Buffer, first: boolean, last: boolean): Buffer {
  const chunk = Buffer.from(blanks);
  if (first) chunk.write("[", 0);
  if (last) chunk.write("]", chunk.length - 1);
  return chunk;
}

/** More than any limit a relay would be tested with, and little enough to hold in memory. */
const MAX_SIZE = 64 * 1024 * 1024;

/** Content of every kind: sized, text, markup, image, JSON that is hard to keep. */
function createContentRoutes(): readonly ResourceRoute[] {
  const prepared = createPreparedContent();
  return [
    getRoute("/bytes", ({ query }) => contentAnswer("application/octet-stream", prepared.bytes(sizeFrom(query, 0)))),
    getRoute("/json", ({ query }) => contentAnswer("application/json", prepared.json(sizeFrom(query, 2)))),
    getRoute("/text", answerText),
    getRoute("/html", () => contentAnswer("text/html; charset=utf-8", Buffer.from(HTML))),
    getRoute("/image", () => contentAnswer("image/png", PNG)),
    getRoute("/invalid-json", () => jsonAnswer('{"id": 1, "name": "cut sho')),
    getRoute("/bigint", () => jsonAnswer('{"id":9007199254740993,"v":1.0,"b":1,"a":2}')),
  ];
}

const HTML = "<!doctype html>\n<title>Sandbox</title>\n<p>Grüße &amp; <b>hello</b></p>\n";

/** Two by two pixels: red, green, blue, white. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEklEQVR42mP4z8DAAMIM/4EAAB/uBfvxq7p3AAAAAElFTkSuQmCC",
  "base64",
);

function sizeFrom(query: URLSearchParams, min: number): number {
  return integerParameter(query, "size", { fallback: 1024, min, max: MAX_SIZE });
}

function answerText({ query }: ResourceRequest): Answer {
  const sample = SAMPLE_TEXTS.get((query.get("charset") ?? "utf-8").toLowerCase());
  if (sample === undefined) throw new InvalidParameter("charset", `one of ${[...SAMPLE_TEXTS.keys()].join(", ")}`);
  return contentAnswer(`text/plain; charset=${sample.charset}`, sample.bytes);
}

/** Answers whose point is their fields. `origin` is the sandbox's own. */
function createFieldRoutes(origin: string): readonly ResourceRoute[] {
  return [
    getRoute("/headers", answerHeaders),
    getRoute("/cookies", () => jsonAnswer('{"cookies":2}', 200, COOKIES)),
    getRoute("/multi", () => jsonAnswer('{"links":3}', 200, LINKS)),
    { path: "/upload/*", methods: ["PUT", "POST"], handle: (request) => answerUpload(request, origin) },
  ];
}

const COOKIES = ["Set-Cookie", "session=sandbox; Path=/; HttpOnly", "Set-Cookie", "theme=dark; Path=/"];

const LINKS = [
  ...["Link", '</items?page=2>; rel="next"'],
  ...["Link", '</items?page=9>; rel="last"'],
  ...["link", '</items?page=1>; rel="first"'],
];

/** Fields that say where a message ends; another value would only break the connection. */
const FRAMING = new Set(["content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "trailer"]);

function answerHeaders({ query }: ResourceRequest): Answer {
  const pairs = [...query];
  const framing = pairs.find(([name]) => FRAMING.has(name.toLowerCase()));
  if (framing !== undefined) return errorAnswer(400, "invalid_request", "Fields of the message framing cannot be set.");
  const contentType = pairs.some(([name]) => name.toLowerCase() === "content-type")
    ? []
    : ["Content-Type", "application/json"];
  const body = Buffer.from(JSON.stringify({ headers: pairs }));
  return { statusCode: 200, fields: [...contentType, ...pairs.flat()], body };
}

/** Location names the content, so that the same upload always gets the same answer; a client can upload there again. */
function answerUpload({ received }: ResourceRequest, origin: string): Answer {
  const id = createHash("sha256").update(received.body).digest("hex").slice(0, 16);
  return emptyAnswer(201, ["Location", `${origin}/upload/${id}`]);
}

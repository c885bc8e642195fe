import { createHash } from "node:crypto";
import { pipeline, Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { brotliCompressSync, createGzip, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { fieldValues, InvalidParameter, integerParameter } from "../../src/sandbox/grants.js";
import { type Answer, contentAnswer, emptyAnswer, errorAnswer, jsonAnswer } from "../../src/sandbox/router.js";
import { answerEcho, anyRoute, getRoute, type ResourceRequest, type ResourceRoute } from "../../src/sandbox/routes.js";
import { type Sandbox, type SandboxOptions, startSandbox as start } from "../../src/sandbox/sandbox.js";
import { createPreparedContent, SAMPLE_TEXTS } from "./prepared-content.js";

export type { Sandbox, SandboxOptions };

/** Starts the sandbox with the resources that only tests and benchmarks need. */
export function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  return start({ ...options, routes: createTestRoutes });
}

/** What is hard to pass on, for tests; `origin` is the sandbox's own. */
function createTestRoutes(origin: string): readonly ResourceRoute[] {
  return [
    anyRoute("/echo-headers/*", (request) => answerEcho(request, request.received.rawHeaders)),
    anyRoute("/raw-echo/*", answerRawEcho),
    getRoute("/echo-token", answerEchoToken),
    getRoute("/youtube/v3/channels", answerYoutubeChannels),
    getRoute("/2/users/me", answerTwitterMe),
    getRoute("/redirect", answerRedirect),
    getRoute("/slow", answerSlow),
    getRoute("/no-content", () => emptyAnswer(204)),
    getRoute("/empty", () => emptyAnswer(200, ["Content-Type", "application/json"])),
    ...createFieldRoutes(origin),
    ...createContentRoutes(),
    ...createCodingRoutes(),
  ];
}

function answerRawEcho({ received }: ResourceRequest): Answer {
  const [contentType = "application/octet-stream"] = fieldValues(received.rawHeaders, "content-type");
  return contentAnswer(contentType, received.body);
}

/** A provider that gives the token away: what a relay has to redact. */
const FORMS: ReadonlyMap<string, (token: string) => Answer> = new Map<string, (token: string) => Answer>([
  ["raw", (token) => textAnswer(`token ${token} end`)],
  ["base64", (token) => textAnswer(`token ${Buffer.from(token).toString("base64")} end`)],
  ["urlencoded", (token) => formAnswer(`access_token=${encodeURIComponent(token)}&token_type=Bearer`)],
  // Escapes the solidus, as PHP's json_encode does: RFC 8259 section 7 allows it.
  ["json", (token) => jsonAnswer(JSON.stringify({ access_token: token }).replaceAll("/", "\\/"))],
  ["header", (token) => jsonAnswer("{}", 200, ["X-Access-Token", token])],
  ["location", (token) => emptyAnswer(302, ["Location", `/echo?access_token=${encodeURIComponent(token)}`])],
  ["reason", (token) => ({ ...jsonAnswer("{}"), reason: token })],
]);

function answerEchoToken({ query, accessToken }: ResourceRequest): Answer {
  const answer = FORMS.get(query.get("as") ?? "raw");
  if (answer === undefined) throw new InvalidParameter("as", `one of ${[...FORMS.keys()].join(", ")}`);
  return answer(accessToken);
}

function textAnswer(text: string): Answer {
  return contentAnswer("text/plain; charset=utf-8", Buffer.from(text));
}

function formAnswer(text: string): Answer {
  return contentAnswer("application/x-www-form-urlencoded", Buffer.from(text));
}

/** https://developers.google.com/youtube/v3/docs/channels/list */
function answerYoutubeChannels({ query, account }: ResourceRequest): Answer {
  if (!query.has("part")) {
    return jsonAnswer('{"error":{"code":400,"message":"Required parameter: part","status":"INVALID_ARGUMENT"}}', 400);
  }
  const items = query.get("mine") === "true" ? [{ kind: "youtube#channel", etag: "c1", id: `UC${account.id}` }] : [];
  const pageInfo = { totalResults: items.length, resultsPerPage: 5 };
  return jsonAnswer(JSON.stringify({ kind: "youtube#channelListResponse", etag: "l1", pageInfo, items }));
}

/** https://docs.x.com/x-api/users/user-lookup-me */
function answerTwitterMe({ account }: ResourceRequest): Answer {
  return jsonAnswer(JSON.stringify({ data: { id: account.id, name: account.name, username: account.login } }));
}
function answerRedirect({ query }: ResourceRequest): Answer {
  const to = query.get("to");
  if (to === null) throw new InvalidParameter("to", "given: the value of Location");
  const statusCode = integerParameter(query, "status", { fallback: 302, min: 300, max: 399 });
  return emptyAnswer(statusCode, ["Location", to]);
}

async function answerSlow({ query }: ResourceRequest): Promise<Answer> {
  const ms = integerParameter(query, "ms", { fallback: 1000, min: 0, max: 60_000 });
  await delay(ms, undefined, { ref: false });
  return jsonAnswer(JSON.stringify({ waitedMs: ms }));
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

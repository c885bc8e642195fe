import type { Answer } from "./answer.js";
import { contentAnswer, jsonAnswer } from "./answer.js";
import { InvalidParameter, integerParameter } from "./parameters.js";
import { createPreparedContent } from "./prepared-content.js";
import type { ResourceRequest, ResourceRoute } from "./resource.js";
import { getRoute } from "./resource.js";
import { SAMPLE_TEXTS } from "./sample-texts.js";

/** More than any limit a relay would be tested with, and little enough to hold in memory. */
const MAX_SIZE = 64 * 1024 * 1024;

/** Content of every kind: sized, text, markup, image, JSON that is hard to keep. */
export function createContentRoutes(): readonly ResourceRoute[] {
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

import { isUtf8 } from "node:buffer";
import type { Answer } from "./answer.js";
import { contentAnswer, jsonAnswer } from "./answer.js";
import { fieldValues, isJsonType, mediaType } from "./fields.js";
import type { ResourceRequest, ResourceRoute } from "./resource.js";
import { anyRoute } from "./resource.js";

/** Resources that answer with what they received. */
export const ECHO_ROUTES: readonly ResourceRoute[] = [
  anyRoute("/echo/*", (request) => answerEcho(request, withoutCredential(request.received.rawHeaders))),
  anyRoute("/echo-headers/*", (request) => answerEcho(request, request.received.rawHeaders)),
  anyRoute("/raw-echo/*", answerRawEcho),
];

function answerEcho({ received, path, query }: ResourceRequest, rawHeaders: readonly string[]): Answer {
  const { method, target, body } = received;
  const asText = isUtf8(body);
  const echo = JSON.stringify({
    method,
    target,
    path,
    query: [...query],
    headers: pairsFromFields(rawHeaders),
    body: body.toString(asText ? "utf8" : "base64"),
    bodyEncoding: asText ? "text" : "base64",
    bodyBytes: body.length,
  });
  const json = asText && isJsonType(mediaType(received.rawHeaders)) ? validJsonText(body) : undefined;
  // Spliced, not printed again: a test sees the numbers, order and white space that arrived.
  return jsonAnswer(json === undefined ? echo : `${echo.slice(0, -1)},"json":${json}}`);
}

/** The field stays, so that a test can count it; its value goes. */
function withoutCredential(rawHeaders: readonly string[]): string[] {
  return rawHeaders.map((text, i) => (i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === "authorization" ? "" : text));
}

function pairsFromFields(rawHeaders: readonly string[]): string[][] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, i) => rawHeaders.slice(2 * i, 2 * i + 2));
}

function validJsonText(body: Buffer): string | undefined {
  const text = body.toString();
  try {
    JSON.parse(text);
    return text;
  } catch {
    // Announced as JSON but not valid: the text stands in `body` all the same.
    return undefined;
  }
}

function answerRawEcho({ received }: ResourceRequest): Answer {
  const [contentType = "application/octet-stream"] = fieldValues(received.rawHeaders, "content-type");
  return contentAnswer(contentType, received.body);
}

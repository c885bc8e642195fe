import { STATUS_CODES } from "node:http";
import type { Answer } from "./answer.js";
import { emptyAnswer, jsonAnswer } from "./answer.js";
import { InvalidParameter, integerParameter, parseInteger } from "./parameters.js";
import type { ResourceRequest, ResourceRoute } from "./resource.js";
import { anyRoute, getRoute } from "./resource.js";

/** Statuses, redirects and answers without content. */
export const STATUS_ROUTES: readonly ResourceRoute[] = [
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

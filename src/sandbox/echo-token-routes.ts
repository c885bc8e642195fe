import type { Answer } from "./answer.js";
import { contentAnswer, emptyAnswer, jsonAnswer } from "./answer.js";
import { InvalidParameter } from "./parameters.js";
import type { ResourceRequest, ResourceRoute } from "./resource.js";
import { getRoute } from "./resource.js";

/** A provider that gives the token away: what a relay has to redact. */
export const ECHO_TOKEN_ROUTES: readonly ResourceRoute[] = [getRoute("/echo-token", answerEchoToken)];

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

import type { AnswerBytes } from "./answer-bytes.js";
import type { AnswerInput } from "./answer-inputs.js";
import { SOUND_STATUS_LINES } from "./answer-values.js";
import type { FuzzRow } from "./surfaces.js";

/** What a provider's answer can be mapped to, besides a row of its own. */
const FAILURES = new Set([
  "PROVIDER_UNREACHABLE",
  "PROVIDER_TIMEOUT",
  "PROVIDER_RESPONSE_INVALID",
  "RESPONSE_TOO_LARGE",
]);
/** Body octets of the campaign's relay. */
export const MAX_RESPONSE_BYTES = 100_000;
const MAX_INTERIM = 16;
/** Fields of the connection, and cookies: never the caller's business. */
const DROPPED = /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|set-cookie2?)$/i;

/** Whether an answer is complete and good HTTP, so that a row must tell what it says. */
export function isSound({
  call,
  interim,
  statusLine,
  fields,
  coding,
  framing,
  edits,
  end,
  ...input
}: AnswerInput): boolean {
  const isFramed =
    framing.kind === "close"
      ? end === "end" && input.stray === ""
      : framing.kind === "chunked"
        ? isPlainChunked(framing)
        : isPlainLength(framing);
  return (
    SOUND_STATUS_LINES.includes(statusLine) &&
    interim.length <= MAX_INTERIM &&
    // undici takes an unsolicited 100 for a fault (threats P15).
    !interim.some((head) => head.startsWith("HTTP/1.1 100")) &&
    fields.every(
      (line) => /^[\w-]+:[^\r\n\0]{0,500}$/.test(line) && !/^(?:upgrade|trailer|te|transfer|content)/i.test(line),
    ) &&
    coding.kind === "right" &&
    isFramed &&
    edits.length === 0 &&
    end !== "reset" &&
    call.method !== "HEAD" &&
    (input.contentType ?? "").length < 200 &&
    input.body.length <= MAX_RESPONSE_BYTES
  );
}

function isPlainLength(framing: AnswerInput["framing"]): boolean {
  return framing.kind === "length" && framing.delta === 0;
}

function isPlainChunked({ extension, trailers }: Extract<AnswerInput["framing"], { kind: "chunked" }>): boolean {
  return /^(?:;a=b)?$/.test(extension) && trailers.every((line) => line.includes(":") && line.length < 100);
}

/** What is wrong with the row of an answer; undefined when nothing is. */
export function rowFaultOf(input: AnswerInput, row: FuzzRow): string | undefined {
  const { errorType, statusCode } = row;
  const sound = isSound(input);
  if (typeof errorType === "string" && FAILURES.has(errorType)) {
    if (sound) return `a sound answer became ${errorType}`;
    return errorType === "PROVIDER_TIMEOUT" && input.end !== "hold" ? "waited for an answer that had ended" : undefined;
  }
  const dropped = Object.keys((row["headers"] ?? {}) as object).find((name) => DROPPED.test(name));
  if (dropped !== undefined) return `headers has ${dropped}`;
  if (errorType !== undefined && errorType !== "API_ERROR") return `a provider's answer became ${errorType}`;
  if ((errorType === "API_ERROR") !== Number(statusCode) >= 400) return `status ${statusCode} became ${errorType}`;
  const isWhole = input.edits.length === 0 && input.interim.length === 0;
  if (isWhole && /^HTTP\/2|^HTTP\/1\.1 [6-9]\d\d /.test(input.statusLine)) return "what is no answer became one";
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(input.statusLine)?.[1]);
  return sound && statusCode !== status ? `status ${status} became ${statusCode}` : undefined;
}

/** What is wrong with the body in the row of a sound answer; answers that hold the token are not compared. */
export function bodyFaultOf(input: AnswerInput, bytes: AnswerBytes, row: FuzzRow, text: string): string | undefined {
  if (!isSound(input) || bytes.hasEcho) return undefined;
  const body = bytes.body;
  if (input.call.isBodyMode) {
    const sent = Buffer.from(String(row["body"] ?? ""), "base64");
    return sent.equals(body) ? undefined : "body is not the provider's bytes";
  }
  if (body.length === 0) return undefined;
  if (row["dataEncoding"] === "base64") {
    return row["data"] === body.toString("base64") ? undefined : "data is not the provider's bytes in base64";
  }
  const isJson =
    /^application\/json$/i.test(input.contentType ?? "") && input.call.method !== "GETFILE" && isJsonText(body);
  if (!isJson || input.call.surface !== "REST") return undefined;
  return text.includes(`"data":${body}`) ? undefined : "data is not the provider's JSON as it was written";
}

function isJsonText(body: Buffer): boolean {
  if (body[0] === 0xef || !Buffer.from(body.toString()).equals(body)) return false;
  try {
    JSON.parse(body.toString());
    return true;
  } catch {
    return false;
  }
}

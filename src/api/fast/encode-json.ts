import { type Outcome, statusCodeOf } from "../../call/outcome.js";
import { type Bytes, base64Json, between, bytesOf, membersJson, stringInSteps } from "../../lib/chunks.js";
import { atOnce } from "../../lib/turns.js";
import type { RowData } from "../rpc/row.js";

/**
 * Encodes the envelope of an outcome as a CallResponse in ProtoJSON, byte for byte as protobuf-es encodes that of
 * api/rpc/row.ts. Unlike in the envelope of the JSON route, `data` is the content of a Value, and empty fields are
 * omitted.
 *
 * @param data of the answer; undefined when no provider answered.
 * @param value the large part of it as JSON, if it was encoded in steps.
 */
export function encodeJson(outcome: Outcome, data: RowData | undefined, value: Bytes | undefined): Bytes {
  const { answer } = outcome;
  const start =
    `{"rows":[{"pincStatus":"${outcome.result}","statusCode":${statusCodeOf(outcome)}` +
    (answer === undefined ? "" : string("contentType", answer.contentType));
  let end = "";
  if (outcome.result === "error")
    end += string("errorType", outcome.errorType) + string("inernalError", outcome.message);
  if (answer !== undefined && answer.headers.length > 0) end += `,"headers":{${membersJson(answer.headers)}}`;
  end += `,"callId":"${outcome.callId}"`;
  if (data === undefined) return bytesOf(Buffer.from(`${start}${end}}]}`));
  const last = answer?.isPossiblyTruncated === true ? ',"possiblyTruncated":true}]}' : "}]}";
  return withData(start, data, value, end, last);
}

/** Puts `data` between `start` and `end`, and its other members between `end` and `last`. */
function withData(start: string, data: RowData, value: Bytes | undefined, end: string, last: string): Bytes {
  const before = `${start},"data":`;
  switch (data.kind) {
    case "value":
      return around(before, JSON.stringify(data.json), `${end}${data.isRounded ? ',"dataRounded":true' : ""}${last}`);
    case "string":
      return around(before, JSON.stringify(data.text), `${end}${string("dataEncoding", data.encoding)}${last}`);
    case "utf8": {
      const text = value ?? atOnce(stringInSteps(data.bytes));
      return around(before, text, `${end}${string("dataEncoding", data.encoding)}${last}`);
    }
    case "binary":
      return around(before, value ?? base64Json(data.bytes), `${end},"dataEncoding":"base64"${last}`);
    case "body":
      return around(`${start}${end},"body":`, value ?? base64Json(data.bytes), last);
  }
}

/** Joins the parts; a value in bytes is not copied. */
function around(before: string, value: string | Bytes, after: string): Bytes {
  if (typeof value === "string") return bytesOf(Buffer.from(before + value + after));
  return between(Buffer.from(before), value, Buffer.from(after));
}

function string(member: string, text: string): string {
  return text === "" ? "" : `,"${member}":${JSON.stringify(text)}`;
}

import { bufferOf } from "../buffer-of.js";
import type { Answer, Outcome } from "../relay/outcome.js";
import { decideRowData, type RowData } from "../rpc/row-data.js";

/**
 * The envelope of an outcome as a CallResponse in ProtoJSON: what protobuf-es makes of rpc/row.ts, byte for byte. Unlike
 * the envelope of the JSON route its `data` is what a Value holds, and what is empty is left out.
 */
export function encodeJson(outcome: Outcome): Buffer {
  const { answer } = outcome;
  const status = outcome.result === "success" ? outcome.answer.statusCode : outcome.statusCode;
  let row = `{"rows":[{"pincStatus":"${outcome.result}","statusCode":${status}`;
  const data = answer === undefined ? undefined : decideRowData(answer.data);
  if (answer !== undefined) row += string("contentType", answer.contentType);
  if (data !== undefined && data.kind !== "body") row += `,"data":${dataJson(data)}`;
  if (outcome.result === "error")
    row += string("errorType", outcome.errorType) + string("inernalError", outcome.message);
  if (answer !== undefined) row += headersJson(answer);
  row += `,"callId":"${outcome.callId}"`;
  if (data !== undefined) row += tailJson(data);
  return Buffer.from(`${row}}]}`);
}

function dataJson(data: Exclude<RowData, { kind: "body" }>): string {
  return JSON.stringify(data.kind === "value" ? data.json : data.text);
}

/** Members that come last. */
function tailJson(data: RowData): string {
  switch (data.kind) {
    case "value":
      return data.isRounded ? ',"dataRounded":true' : "";
    case "string":
      return string("dataEncoding", data.encoding);
    case "body":
      return `,"body":"${bufferOf(data.bytes).toString("base64")}"`;
  }
}

function string(member: string, text: string): string {
  return text === "" ? "" : `,"${member}":${JSON.stringify(text)}`;
}

function headersJson({ headers }: Answer): string {
  let members = "";
  for (const [name, value] of headers)
    members += `${members === "" ? "" : ","}${JSON.stringify(name)}:${JSON.stringify(value)}`;
  return members === "" ? "" : `,"headers":{${members}}`;
}

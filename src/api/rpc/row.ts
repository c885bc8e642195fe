import { create, fromJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  type CallResponse,
  CallResponseSchema,
  type ResultRow,
  ResultRowSchema,
} from "../../../gen/relay/v1/relay_pb.js";
import type { Outcome } from "../../call/outcome.js";
import { decideRowData, type RowData } from "./row-data.js";

type DataMembers = Pick<ResultRow, "dataEncoding" | "dataRounded"> & { data?: Value; body?: Uint8Array };

/** The envelope of an outcome as a message. */
export function responseFromOutcome(outcome: Outcome): CallResponse {
  return create(CallResponseSchema, { rows: [rowFromOutcome(outcome)] });
}

/** The row of an outcome as a message. */
export function rowFromOutcome(outcome: Outcome): ResultRow {
  const { answer } = outcome;
  const row = create(ResultRowSchema, {
    pincStatus: outcome.result,
    statusCode: outcome.result === "success" ? outcome.answer.statusCode : outcome.statusCode,
    callId: outcome.callId,
  });
  if (outcome.result === "error") {
    row.errorType = outcome.errorType;
    row.inernalError = outcome.message;
  }
  if (answer !== undefined) {
    row.contentType = answer.contentType;
    row.headers = Object.fromEntries(answer.headers);
    row.possiblyTruncated = answer.isPossiblyTruncated === true;
    Object.assign(row, membersFrom(decideRowData(answer.data)));
  }
  return row;
}

function membersFrom(data: RowData): DataMembers {
  switch (data.kind) {
    case "value":
      return { data: fromJson(ValueSchema, data.json), dataEncoding: "", dataRounded: data.isRounded };
    case "string":
      return { data: stringValue(data.text), dataEncoding: data.encoding, dataRounded: false };
    case "utf8":
      return { data: stringValue(data.bytes.concat().toString()), dataEncoding: data.encoding, dataRounded: false };
    case "binary":
      return {
        data: stringValue(data.bytes.concat().toString("base64")),
        dataEncoding: "base64",
        dataRounded: false,
      };
    case "body":
      return { body: data.bytes.concat(), dataEncoding: "", dataRounded: false };
  }
}

function stringValue(text: string): Value {
  return create(ValueSchema, { kind: { case: "stringValue", value: text } });
}

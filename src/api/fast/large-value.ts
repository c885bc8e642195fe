import type { Bytes } from "../../lib/chunks.js";
import { base64InSteps, base64StringInSteps, stringInSteps } from "../../lib/encode-in-steps.js";
import { LARGE_BYTES } from "../../lib/slices.js";
import type { Steps } from "../../lib/turns.js";
import type { RowData } from "../rpc/row-data.js";
import type { LaneForm } from "./head.js";

/** What of a row has to be written anew before it can be sent, where it is large; undefined for all others. */
export function largeValueOf(form: LaneForm, data: RowData | undefined): Steps<Bytes> | undefined {
  if (data === undefined || !("bytes" in data) || data.bytes.length <= LARGE_BYTES) return undefined;
  switch (data.kind) {
    case "binary":
      return form === "json" ? base64StringInSteps(data.bytes) : base64InSteps(data.bytes);
    case "utf8":
      return form === "json" ? stringInSteps(data.bytes) : undefined;
    case "body":
      return form === "json" ? base64StringInSteps(data.bytes) : undefined;
  }
}

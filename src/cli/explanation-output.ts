import { toJson } from "@bufbuild/protobuf";
import { ExplainCallResponseSchema } from "../../gen/relay/admin/v1/call_pb.js";
import { messageFromExplanation } from "../admin/explanation-message.js";
import type { Explanation } from "../call/explanation.js";
import { textFromExplanation } from "./explanation-text.js";
import { writeJson, writeLine } from "./output.js";

/** Prints an explanation: for programs as the administration API answers it. */
export function writeExplanation(explanation: Explanation, { json }: { readonly json: boolean }): void {
  const text = textFromExplanation(explanation);
  if (json) writeJson(toJson(ExplainCallResponseSchema, messageFromExplanation(explanation, "operator", Date.now())));
  else if (text !== "") writeLine(text);
}

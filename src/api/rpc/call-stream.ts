import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type CallStreamResponse,
  CallStreamResponseSchema,
  type RelayService,
} from "../../../gen/relay/v1/relay_pb.js";
import type { Call } from "../../call/call.js";
import type { ErrorOutcome } from "../../call/outcome.js";
import type { StreamPart } from "../../call/relay.js";
import { textFromField } from "../../call/text.js";
import { callContextFrom } from "./call-context.js";
import { callFrom, originOf, type RelayServiceOptions } from "./relay-service.js";
import { rowFromOutcome } from "./row.js";

/** `CallStream` of relay.v1.RelayService: message → relay → messages, as they come. RPC code OK, whatever happens. */
export function createCallStream(options: RelayServiceOptions): ServiceImpl<typeof RelayService>["callStream"] {
  return async function* callStream(request, handlerContext) {
    const context = callContextFrom(handlerContext);
    const origin = originOf(request, context);
    let call: Call;
    try {
      call = callFrom(options, origin, request, context);
    } catch (error) {
      yield messageFromFailure(options.relay.refuse(origin, error));
      return;
    }
    for await (const part of options.relay.stream(call)) yield messageFromPart(call, part);
  };
}

function messageFromPart({ callId }: Call, part: StreamPart): CallStreamResponse {
  switch (part.kind) {
    case "head": {
      const { statusCode, contentType, headers, isPossiblyTruncated: possiblyTruncated = false } = part.head;
      const texts = headers.map(([name, value]) => [name, textFromField(value)]);
      const value = { statusCode, contentType, headers: Object.fromEntries(texts), callId, possiblyTruncated };
      return create(CallStreamResponseSchema, { part: { case: "head", value } });
    }
    case "chunk":
      return create(CallStreamResponseSchema, { part: { case: "chunk", value: part.bytes } });
    case "failure":
      return messageFromFailure(part.outcome);
  }
}

function messageFromFailure(outcome: ErrorOutcome): CallStreamResponse {
  return create(CallStreamResponseSchema, { part: { case: "row", value: rowFromOutcome(outcome) } });
}

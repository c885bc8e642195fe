import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ExplainCallResponse,
  ExplainCallResponseSchema,
  type ExplainedRequestSchema,
  ExplainCallResponse_Renewal as Renewal,
  type RuleVerdictSchema,
} from "../../gen/relay/admin/v1/call_pb.js";
import { type ExplainedRule, type Explanation, MASK } from "../call/explanation.js";
import type { RenewalNeed } from "../tokens/renewal-need.js";
import { messageFromApplication } from "./application-message.js";
import { messageFromConnection, summaryFrom } from "./connection-message.js";
import type { Role } from "./operator.js";
import { hiddenFieldsFor, type IsHidden } from "./shown-provider.js";

/** Enough of a body to see what it is. In bytes. */
const BODY_START_BYTES = 4096;

const RENEWALS: Readonly<Record<RenewalNeed, Renewal>> = {
  none: Renewal.NONE,
  beside: Renewal.BESIDE,
  before: Renewal.BEFORE,
};

/** What would become of a call, as the role may see it. @param now milliseconds since the epoch. */
export function messageFromExplanation(
  explanation: Explanation,
  role: Role | undefined,
  now: number,
): ExplainCallResponse {
  const { application, caller, provider, egress, connection, renewal, request, refusal } = explanation;
  return create(ExplainCallResponseSchema, {
    ...(application && { application: messageFromApplication(application) }),
    ...(caller && { caller: verdictFrom(caller) }),
    providerName: provider?.name ?? "",
    ...(egress && { egress: verdictFrom(egress) }),
    ...(application &&
      connection && { connection: messageFromConnection(summaryFrom(connection, application.publicKey), now) }),
    renewal: renewal === undefined ? Renewal.UNSPECIFIED : RENEWALS[renewal],
    ...(request && { request: messageFromRequest(request, hiddenFieldsFor(role, provider)) }),
    ...(refusal && { refusal }),
  });
}

function verdictFrom({ isAllowed, rule }: ExplainedRule): MessageInitShape<typeof RuleVerdictSchema> {
  return { allowed: isAllowed, rule };
}

function messageFromRequest(
  request: NonNullable<Explanation["request"]>,
  isHidden: IsHidden,
): MessageInitShape<typeof ExplainedRequestSchema> {
  const { method, origin, path, headers, body } = request;
  const shown = (name: string, value: string) => ({ name, value: isHidden(name, value) ? MASK : value });
  const pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [shown(name, headers[at + 1] ?? "")] : []));
  return {
    method,
    url: origin + path,
    headers: pairs,
    bodyBytes: body?.length ?? 0,
    bodyStart: body?.subarray(0, BODY_START_BYTES) ?? new Uint8Array(),
  };
}

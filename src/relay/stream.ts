import type { Redactor } from "../redaction/redact.js";
import { causeOf } from "../telemetry/log.js";
import { requireAllowedCall } from "./allowed-call.js";
import { headFromUpstream } from "./answer.js";
import { requireRoom } from "./budget.js";
import type { Call } from "./call.js";
import {
  type AnswerHead,
  callerGone,
  type ErrorOutcome,
  type Outcome,
  outcomeFromAnswer,
  outcomeFromError,
  outcomeFromFailure,
} from "./outcome.js";
import type { RelayOptions } from "./relay.js";
import { sendWithToken } from "./send-with-token.js";
import type { StreamGarbage } from "./stream-garbage.js";
import { createStreamSender, type StreamedAnswer } from "./stream-sender.js";
import { type CallTrace, noteStreamed } from "./trace.js";

/** One piece of an answer: the head, then chunks; a failure is the last one, with or without a head before it. */
export type StreamPart =
  | { readonly kind: "head"; readonly head: AnswerHead }
  /** Never empty. */
  | { readonly kind: "chunk"; readonly bytes: Buffer }
  | { readonly kind: "failure"; readonly outcome: ErrorOutcome };

/** What one stream holds at a time: bytes that wait for the caller, here and in its socket. */
const STREAM_BYTES = 128 * 1024;

/** One call whose answer is handed on as it comes, top to bottom. */
export async function* streamCall(options: RelayOptions, call: Call): AsyncGenerator<StreamPart, void, undefined> {
  const trace = options.log.begin(call, "CallStream");
  let outcome: Outcome = outcomeFromError(call.callId, callerGone(), options.log.fault);
  try {
    requireRoom(call.memory, STREAM_BYTES);
    const allowed = await requireAllowedCall(options, call, trace);
    const { answer, secrets } = await sendWithToken(options, allowed, createStreamSender(options.upstream));
    const redactor = options.redactorFor(secrets);
    const head = headFromUpstream(answer, redactor);
    trace.headMs = performance.now() - call.startedAt;
    yield* partsFrom(head, answer, { redactor, trace, garbage: options.streamGarbage });
    outcome = outcomeFromAnswer(call.callId, { ...head, data: { kind: "empty" } });
  } catch (error) {
    trace.cause = causeOf(error);
    const failed = outcomeFromFailure(call, error, options.log.fault);
    outcome = failed;
    yield { kind: "failure", outcome: failed };
  } finally {
    options.log.call(trace, outcome);
  }
}

interface PartsOptions {
  readonly redactor: Redactor;
  readonly trace: CallTrace;
  readonly garbage: StreamGarbage;
}

async function* partsFrom(
  head: AnswerHead,
  { body, stream }: StreamedAnswer,
  { redactor, trace, garbage }: PartsOptions,
): AsyncGenerator<StreamPart, void, undefined> {
  const redacting = redactor.stream();
  try {
    stream.begin();
    yield { kind: "head", head };
    for await (const piece of startedWith(body.concat(), stream.body)) {
      garbage.add(piece.length);
      yield* chunksOf(redacting.push(piece), trace);
    }
    yield* chunksOf(redacting.end(), trace);
  } finally {
    stream.close();
  }
}

function* chunksOf(parts: readonly Buffer[], trace: CallTrace): Generator<StreamPart, void, undefined> {
  for (const bytes of parts) {
    noteStreamed(trace, bytes);
    yield { kind: "chunk", bytes };
  }
}

async function* startedWith(start: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  if (start.length > 0) yield start;
  yield* rest;
}

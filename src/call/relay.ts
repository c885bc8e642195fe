import { type Bytes, bytesOf, createChunks } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import { asksForBody } from "../providers/credential.js";
import type { Redactor } from "../redaction/redact.js";
import { causeOf } from "../telemetry/log.js";
import { headerValue } from "../upstream/exchange.js";
import type { Upstream, UpstreamAnswer, UpstreamStream } from "../upstream/request.js";
import { type AllowanceOptions, type AllowedCall, type CaptureOptions, requireAllowedCall } from "./allowed-call.js";
import { answerFromUpstream, headFromUpstream } from "./answer.js";
import { requireRoom, type StreamGarbage } from "./budget.js";
import type { Call, CallOrigin } from "./call.js";
import {
  type AnswerHead,
  callerGone,
  type ErrorOutcome,
  type Outcome,
  outcomeFromAnswer,
  outcomeFromError,
  outcomeFromFailure,
} from "./outcome.js";
import { type RedactorFor, type Sender, sendWithToken, type TokenOptions } from "./send-with-token.js";
import { isJsonType, parseMediaType } from "./text.js";
import { type CallTrace, noteStreamed, type RelayLog } from "./trace.js";

/** One piece of an answer: the head, then chunks; a failure is the last one, with or without a head before it. */
export type StreamPart =
  /** `whole`: the whole body, which may be empty, where all of it is here; then nothing follows. */
  | { readonly kind: "head"; readonly head: AnswerHead; readonly whole?: Buffer | undefined }
  /** Never empty. */
  | { readonly kind: "chunk"; readonly bytes: Buffer }
  | { readonly kind: "failure"; readonly outcome: ErrorOutcome };

/** What `stream()` gives: a list where all of it is here. */
export type StreamParts = readonly [StreamPart] | AsyncIterable<StreamPart>;

/** What a call needs; everything is a value or an interface, so that the use case knows no protocol and no store. */
interface RelayOptions extends Omit<AllowanceOptions, "tokens">, CaptureOptions, TokenOptions {
  readonly upstream: Upstream;
  readonly redactorFor: RedactorFor;
  readonly streamGarbage: StreamGarbage;
  readonly log: RelayLog;
}

/** What of an outcome has to be written anew before it can leave, where that is large. */
export type LargePart<Large> = (outcome: Outcome) => Steps<Large> | undefined;

/** How a call ended. */
export interface Performed<Large> {
  readonly outcome: Outcome;
  /** What the steps of the large part gave; undefined where there were none. */
  readonly large: Large | undefined;
}

/** The use case: one call at a provider, for one user of one application. */
export interface Relay {
  /**
   * Never rejects: whatever happens becomes an outcome, and one log line. The large part is worked on within the deadline
   * of the call, too.
   */
  perform<Large = never>(call: Call, largePart?: LargePart<Large>): Promise<Performed<Large>>;
  /**
   * The same call, whose answer is handed on as it comes. Never rejects: a failure is the last part. What it gives is to be
   * iterated at once, to its end or until the loop is left, so that the log line is written and the provider's socket let go.
   */
  stream(call: Call): Promise<StreamParts>;
  /** The outcome of what could not even be read as a call. */
  refuse(origin: CallOrigin, error: unknown): ErrorOutcome;
}

/** Every protocol calls this, and nothing else, to perform a call. */
export function createRelay(options: RelayOptions): Relay {
  const sender: Sender<UpstreamAnswer> = {
    send: (request, { call, trace }) => options.upstream.send(request, call, trace),
    discard: () => {},
  };
  const streamSender = createStreamSender(options.upstream);
  return {
    perform: (call, largePart) => performCall(options, sender, call, largePart),
    stream: (call) => streamCall(options, streamSender, call),
    refuse(origin, error) {
      const outcome = outcomeFromError(origin.callId, error, options.log.fault);
      const isStream = origin.surface === "stream" || origin.surface === "via";
      options.log.call(options.log.begin(origin, isStream ? "CallStream" : "Call"), outcome);
      return outcome;
    },
  };
}

/** One call, top to bottom. */
async function performCall<Large>(
  options: RelayOptions,
  sender: Sender<UpstreamAnswer>,
  call: Call,
  largePart: LargePart<Large> | undefined,
): Promise<Performed<Large>> {
  const trace = options.log.begin(call, "Call");
  let performed: Performed<Large>;
  try {
    const allowed = await requireAllowedCall(options, call, trace);
    const { answer, secrets } = await sendWithToken(options, allowed, sender);
    const form = call.responseMode === "body" ? "body" : allowed.checked.answerAs;
    const large = { turns: options.turns, signal: call.signal, deadline: call.deadline, memory: call.memory };
    const mapped = answerFromUpstream(answer, form, options.redactorFor(secrets), large);
    const outcome = outcomeFromAnswer(call.callId, mapped instanceof Promise ? await mapped : mapped);
    const steps = largePart?.(outcome);
    performed = { outcome, large: steps && (await options.turns.take(steps, call)) };
  } catch (error) {
    performed = { outcome: failureOf(options, call, trace, error), large: undefined };
  }
  options.log.call(trace, performed.outcome);
  return performed;
}

/** What one stream holds at a time: bytes that wait for the caller, here and in its socket. */
const STREAM_BYTES = 128 * 1024;
/** What a body that is sent as it comes holds besides: its beginning, and what waits for the provider. */
const STREAMED_BODY_BYTES = 192 * 1024;

/** One call whose answer is handed on as it comes, top to bottom. */
async function streamCall(options: RelayOptions, sender: Sender<StreamedAnswer>, call: Call): Promise<StreamParts> {
  const trace = options.log.begin(call, "CallStream");
  try {
    requireRoom(call.memory, STREAM_BYTES + (call.description.passed?.body === undefined ? 0 : STREAMED_BODY_BYTES));
    const allowed = await requireAllowedCall(options, call, trace);
    const { answer, secrets } = await sendWithToken(options, allowed, sender);
    const redactor = options.redactorFor(secrets);
    const head = headFromUpstream(answer, redactor);
    trace.headMs = performance.now() - call.startedAt;
    const came = answer.body.length === 0 ? answer.stream.whole() : undefined;
    if (came === undefined) return partsFrom(options, { call, trace, head, answer, redactor });
    const whole = redactor.bytes(came);
    noteStreamed(trace, whole);
    endStream(options, call, trace, streamedFrom(call, head));
    return [{ kind: "head", head, whole }];
  } catch (error) {
    const outcome = failureOf(options, call, trace, error);
    endStream(options, call, trace, outcome);
    return [{ kind: "failure", outcome }];
  }
}

/** An answer of which the head is here. */
interface BegunAnswer {
  readonly call: Call;
  readonly trace: CallTrace;
  readonly head: AnswerHead;
  readonly answer: StreamedAnswer;
  readonly redactor: Redactor;
}

async function* partsFrom(
  options: RelayOptions,
  { call, trace, head, answer: { body, stream }, redactor }: BegunAnswer,
): AsyncGenerator<StreamPart, void, undefined> {
  const chunkFrom = (bytes: Buffer): StreamPart => {
    noteStreamed(trace, bytes);
    return { kind: "chunk", bytes };
  };
  let outcome: Outcome | undefined;
  try {
    stream.begin();
    yield { kind: "head", head };
    const redacting = redactor.stream();
    for (const bytes of redacting.push(body.concat())) yield chunkFrom(bytes);
    for await (const piece of stream.body) {
      options.streamGarbage.add(piece.length);
      for (const bytes of redacting.push(piece)) yield chunkFrom(bytes);
    }
    for (const bytes of redacting.end()) yield chunkFrom(bytes);
    outcome = streamedFrom(call, head);
  } catch (error) {
    const failed = failureOf(options, call, trace, error);
    outcome = failed;
    yield { kind: "failure", outcome: failed };
  } finally {
    stream.close();
    // Left by whoever reads it: the caller is gone, or had to give way.
    endStream(options, call, trace, outcome ?? outcomeFromFailure(call, callerGone(), options.log.fault));
  }
}

/** Member by member: a spread takes V8 as long as a look-up. */
function streamedFrom(
  { callId }: Call,
  { statusCode, isPossiblyTruncated, contentType, headers }: AnswerHead,
): Outcome {
  return outcomeFromAnswer(callId, { statusCode, isPossiblyTruncated, contentType, headers, data: { kind: "empty" } });
}

function failureOf({ log }: RelayOptions, call: Call, trace: CallTrace, error: unknown): ErrorOutcome {
  trace.cause = causeOf(error);
  return outcomeFromFailure(call, error, log.fault);
}

function endStream({ log }: RelayOptions, call: Call, trace: CallTrace, outcome: Outcome): void {
  const body = call.description.passed?.body;
  if (body !== undefined) trace.requestBytes = body.taken;
  log.call(trace, outcome);
}

/** An answer of which only the beginning is here. */
interface StreamedAnswer extends UpstreamAnswer {
  /** What was looked at already; comes before the rest. */
  readonly body: Bytes;
  readonly stream: UpstreamStream;
}

/** Errors are shorter; an answer that is longer does not say that the token has ended. */
const MAX_START_BYTES = 64 * 1024;

const NOTHING = createChunks();

/**
 * Sends requests whose answers are handed on as they come. The body is waited for only where the provider's definition
 * names a member of it as the sign of an ended token, and only when it is JSON; then its first 64 KiB, at most, are read
 * before the head leaves, within the deadline of the call. Every other sign stands in status and fields.
 */
function createStreamSender(upstream: Upstream): Sender<StreamedAnswer> {
  return {
    async send(request, allowed) {
      const stream = await upstream.stream(request, allowed.call, allowed.trace);
      try {
        const { statusCode, rawHeaders, isPossiblyTruncated = false } = stream;
        const body = speaksOfToken(allowed, stream) ? bytesOf(await startOf(stream.body)) : NOTHING;
        return { statusCode, rawHeaders, isPossiblyTruncated, body, stream };
      } catch (error) {
        stream.close();
        throw error;
      }
    },
    discard: ({ stream }) => stream.close(),
  };
}

function speaksOfToken({ provider }: AllowedCall, { statusCode, rawHeaders }: UpstreamStream): boolean {
  // The words of a refused signature are of no fixed type.
  if (provider.oauth1 !== undefined && statusCode === 401) return true;
  if (!asksForBody(provider, statusCode)) return false;
  return isJsonType(parseMediaType(headerValue(rawHeaders, "content-type")).essence);
}

async function startOf(chunks: AsyncIterator<Buffer>): Promise<Buffer> {
  const start: Buffer[] = [];
  let length = 0;
  while (length < MAX_START_BYTES) {
    const chunk = await chunks.next();
    if (chunk.done === true) break;
    start.push(chunk.value);
    length += chunk.value.length;
  }
  return Buffer.concat(start, length);
}

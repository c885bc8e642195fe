import { type Bytes, bytesOf, createChunks } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import { asksForBody, MAX_SIGNAL_BYTES } from "../providers/credential.js";
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

/** One part of an answer: first the head, then chunks. A failure is the last part, with or without a head before it. */
export type StreamPart =
  /** `whole`: the complete body, possibly empty, when it has already arrived; then nothing follows. */
  | { readonly kind: "head"; readonly head: AnswerHead; readonly whole?: Buffer | undefined }
  /** Never empty. */
  | { readonly kind: "chunk"; readonly bytes: Buffer }
  | { readonly kind: "failure"; readonly outcome: ErrorOutcome };

/** What `stream()` resolves to: an array of one part when nothing is left to wait for. */
export type StreamParts = readonly [StreamPart] | AsyncIterable<StreamPart>;

/** Dependencies of a call. All are values or interfaces, so that the use case knows no protocol and no store. */
interface RelayOptions extends Omit<AllowanceOptions, "tokens">, CaptureOptions, TokenOptions {
  readonly upstream: Upstream;
  readonly redactorFor: RedactorFor;
  readonly streamGarbage: StreamGarbage;
  readonly log: RelayLog;
}

/** The work of rewriting a large part of an outcome before it can be sent; undefined when there is none. */
export type LargePart<Large> = (outcome: Outcome) => Steps<Large> | undefined;

/** How a call ended. */
export interface Performed<Large> {
  readonly outcome: Outcome;
  /** Result of the large part's steps; undefined where there were none. */
  readonly large: Large | undefined;
}

/** The use case: one call at a provider, for one user of one application. */
export interface Relay {
  /**
   * Performs a call. Never rejects: whatever happens becomes an outcome and one log line. The large part must also be
   * done before the call's deadline.
   */
  perform<Large = never>(call: Call, largePart?: LargePart<Large>): Promise<Performed<Large>>;
  /**
   * Performs a call and streams the answer as it arrives. Never rejects: a failure is the last part. Iterate the result
   * at once, to its end or until you break out: this writes the log line and frees the provider's socket.
   */
  stream(call: Call): Promise<StreamParts>;
  /** The outcome of a request that could not be read as a call; writes its log line. */
  refuse(origin: CallOrigin, error: unknown): ErrorOutcome;
}

/** Creates the use case. Every protocol performs calls through it, and only through it. */
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

/** Performs one call, top to bottom. */
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

/** Bytes that one stream buffers for the caller, in the relay and in its socket. */
const STREAM_BYTES = 128 * 1024;
/** Bytes that a streamed request body holds in addition: its beginning, and what is buffered for the provider. */
const STREAMED_BODY_BYTES = 192 * 1024;

/** Performs one call whose answer is streamed, top to bottom. */
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

/** An answer whose head has arrived. */
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
    // Without an outcome the reader broke out of the loop: the caller has gone, or the status has no content.
    const isWhole = call.signal?.aborted !== true;
    outcome ??= isWhole ? streamedFrom(call, head) : outcomeFromFailure(call, callerGone(), options.log.fault);
    endStream(options, call, trace, outcome);
  }
}

/** Member by member: a spread costs V8 as much as a look-up. */
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

/** An answer of which only the beginning has been read. */
interface StreamedAnswer extends UpstreamAnswer {
  /** The part already read; precedes the rest. */
  readonly body: Bytes;
  readonly stream: UpstreamStream;
}

const NOTHING = createChunks();

/**
 * Sends requests whose answers are streamed. Most signs of an expired token are in the status and fields. Only two need
 * the body: a JSON answer where the provider's definition names a member as an expiry signal, and a 401 to a signed
 * call (OAuth 1.0). Then about 64 KiB of it are read before the head is passed on, within the deadline of the call.
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
  // The text about a refused signature has no fixed media type.
  if (provider.oauth1 !== undefined && statusCode === 401) return true;
  if (!asksForBody(provider, statusCode)) return false;
  return isJsonType(parseMediaType(headerValue(rawHeaders, "content-type")).essence);
}

async function startOf(chunks: AsyncIterator<Buffer>): Promise<Buffer> {
  const start: Buffer[] = [];
  let length = 0;
  while (length < MAX_SIGNAL_BYTES) {
    const chunk = await chunks.next();
    if (chunk.done === true) break;
    start.push(chunk.value);
    length += chunk.value.length;
  }
  return Buffer.concat(start, length);
}

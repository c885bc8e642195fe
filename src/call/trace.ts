import { isActive } from "../applications/caller.js";
import { timeOfCallId } from "../http/identity.js";
import { RelayError } from "../model/errors.js";
import type { EndedCall } from "../records/call-block.js";
import type { CallCapture, ResponseToCapture } from "../records/call-capture.js";
import type { CaptureWriter } from "../records/capture-store.js";
import type { FigureWriter } from "../records/figures.js";
import type { RecordWriter } from "../records/record-writer.js";
import type { CallRecord } from "../telemetry/call-log.js";
import type { CallSpans, SpanMethod, StartSpans } from "../telemetry/call-spans.js";
import type { UpstreamHead, UpstreamRequest } from "../upstream/request.js";
import type { CallOrigin } from "./call.js";
import type { CallDecisions, Deciding } from "./explanation.js";
import { type Answer, type AnswerData, type Outcome, statusCodeOf } from "./outcome.js";

/**
 * What is recorded about a call while it runs; becomes its log line, metrics, spans and record. A class, so that every
 * member is there from the start.
 */
export class CallTrace {
  /** Includes the user id once that much of the call could be read. */
  readonly origin: CallOrigin & { readonly userId?: string };
  /** Undefined unless traces are on. */
  readonly spans: CallSpans | undefined;
  /** Decisions of the checks made so far. */
  readonly decisions: Deciding = undecided();
  /** Code or class of the error behind a failure. */
  cause: string | undefined;
  method: string | undefined;
  upstreamOrigin: string | undefined;
  requestBytes = 0;
  /** Undefined unless the call is being captured. */
  capture: CallCapture | undefined;
  /** Milliseconds that the call waited for tokens, and in the queue of its origin. */
  tokenMs: number | undefined;
  queueMs: number | undefined;
  providerMs: number | undefined;
  /** Milliseconds until the head of a streamed answer. */
  headMs: number | undefined;
  /** Bytes of a streamed body passed on so far. */
  streamedBytes = 0;
  /** Head of the answer to the latest request. */
  head: UpstreamHead | undefined;
  /** When the current request was sent, in milliseconds of `performance.now()`. */
  sentAt = 0;

  /** @param spans undefined where no call is performed as well. */
  constructor(origin: CallOrigin, spans?: CallSpans) {
    this.origin = origin;
    this.spans = spans;
  }
}

/** Where calls and faults are reported. */
export interface RelayLog {
  /** Starts the trace of one call. */
  begin(origin: CallOrigin, method: SpanMethod): CallTrace;
  call(trace: CallTrace, outcome: Outcome): void;
  /** Reports a fault of the relay, with its place; describes the error by class and code only. */
  fault(where: string, error: unknown): void;
}

/** Called once per finished call; must not throw. */
export type CallSink = (record: CallRecord, trace: CallTrace, outcome: Outcome) => void;

/** Where finished calls are reported. */
interface RelayLogOptions {
  /** Each is called once per finished call. */
  readonly sinks: readonly CallSink[];
  readonly fault: RelayLog["fault"];
  /** Undefined when traces are off. */
  readonly startSpans: StartSpans | undefined;
}

/** Reports each finished call as an allow-list of names and numbers. */
export function createRelayLog({ sinks, fault, startSpans }: RelayLogOptions): RelayLog {
  return {
    fault,
    begin: (origin, method) => new CallTrace(origin, startSpans?.(origin, method)),
    call(trace, outcome) {
      const record = recordFrom(trace, outcome);
      for (const sink of sinks) sink(record, trace, outcome);
      trace.spans?.end(record);
    },
  };
}

/** The decisions before the first check. */
export function undecided(): Deciding {
  return {
    application: undefined,
    caller: undefined,
    provider: undefined,
    checked: undefined,
    place: undefined,
    egress: undefined,
    permission: undefined,
    connection: undefined,
  };
}

/** Notes that a request is sent to the provider. */
export function noteSent(trace: CallTrace, { method, origin, body }: UpstreamRequest): void {
  trace.method = method;
  trace.upstreamOrigin = origin;
  trace.requestBytes = body?.length ?? 0;
  trace.head = undefined;
  trace.sentAt = performance.now();
}

/** Notes that the provider answered; the time of a second request is added to the first. */
export function noteAnswered(trace: CallTrace, statusCode: number): void {
  trace.providerMs = (trace.providerMs ?? 0) + performance.now() - trace.sentAt;
  trace.spans?.endRequest(statusCode, undefined);
}

/** Notes that no answer came. */
export function noteUnanswered(trace: CallTrace, error: unknown): void {
  trace.providerMs = (trace.providerMs ?? 0) + performance.now() - trace.sentAt;
  trace.spans?.endRequest(undefined, reasonOf(error));
}

/** The reason of a RelayError; of any other error only the class, since its text may quote anything. */
export function reasonOf(error: unknown): string {
  if (error instanceof RelayError) return error.reason;
  return error instanceof Error ? error.name : typeof error;
}

/** Notes that bytes of the body are passed on. */
export function noteStreamed(trace: CallTrace, bytes: Uint8Array): void {
  trace.streamedBytes += bytes.length;
  trace.capture?.noteChunk(bytes);
}

function recordFrom(trace: CallTrace, outcome: Outcome): CallRecord {
  const { origin, decisions } = trace;
  const { application, provider } = decisions;
  return {
    callId: origin.callId,
    requestId: origin.requestId === origin.callId ? undefined : origin.requestId,
    traceId: trace.spans?.traceId ?? origin.traceContext?.traceId,
    surface: origin.surface,
    applicationId: isActive(application) ? application.id : undefined,
    provider: provider?.name,
    method: trace.method,
    origin: trace.upstreamOrigin,
    status: statusCodeOf(outcome),
    errorType: outcome.result === "error" ? outcome.errorType : undefined,
    rule: ruleOf(decisions),
    cause: trace.cause,
    totalMs: performance.now() - origin.startedAt,
    headMs: trace.headMs,
    tokenMs: trace.tokenMs,
    providerMs: trace.providerMs,
    requestBytes: trace.requestBytes,
    responseBytes: trace.streamedBytes + sizeOf(outcome.answer?.data),
  };
}

/** The rule that decided last. A caller rule counts only if it refused. */
function ruleOf({ caller, permission, egress }: CallDecisions): string | undefined {
  if (caller?.isAllowed === false) return caller.rule;
  if (permission?.application?.isAllowed === false) return "application";
  return permission?.callToken?.isAllowed === false ? "call_token" : egress?.rule;
}

function sizeOf(data: AnswerData | undefined): number {
  if (data === undefined || data.kind === "empty") return 0;
  if (data.kind === "text") return Buffer.byteLength(data.text);
  return data.kind === "json" ? data.text.length : data.bytes.length;
}

/** Where records and captures go. */
interface RecordingOptions {
  readonly records: Pick<RecordWriter, "add">;
  readonly captures: Pick<CaptureWriter, "add">;
  readonly figures: Pick<FigureWriter, "add">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Creates the sink that records every call of a known application. */
export function createCallRecorder({ records, captures, figures, now }: RecordingOptions): CallSink {
  return (told, trace, outcome) => {
    const { applicationId, callId } = told;
    if (applicationId === undefined) return;
    const startedAt = timeOfCallId(callId) ?? Math.round(now() - told.totalMs);
    const ended = endedCallFrom(told, applicationId, trace, startedAt);
    records.add(ended);
    figures.add(applicationId, told.provider, countedCallFrom(ended, told.headMs));
    if (trace.capture === undefined) return;
    const content = trace.capture.content(endFrom(outcome));
    captures.add({ callId, applicationId, captureUntil: trace.capture.captureUntil, content });
  };
}

function endedCallFrom(told: CallRecord, applicationId: string, trace: CallTrace, startedAt: number): EndedCall {
  const {
    decisions: { place, checked, connection },
    queueMs,
  } = trace;
  const target = place && describeTarget(place.path, checked?.query ?? []);
  return {
    callId: told.callId,
    applicationId,
    startedAt,
    surface: told.surface,
    provider: told.provider,
    method: checked?.method,
    origin: place && copyOf(place.origin),
    path: target?.path,
    queryKeys: target?.queryKeys ?? [],
    status: told.status,
    errorType: told.errorType,
    rule: told.rule && copyOf(told.rule),
    cause: told.cause,
    totalMs: told.totalMs,
    tokenMs: trace.tokenMs,
    queueMs,
    providerMs: told.providerMs && providerMsFrom(told, told.providerMs, queueMs ?? 0),
    requestBytes: told.requestBytes,
    responseBytes: told.responseBytes,
    isCaptured: trace.capture !== undefined,
    userId: trace.origin.userId && copyOf(trace.origin.userId),
    connection: connection?.id,
    requestId: told.requestId,
  };
}

/** A streamed answer is timed up to its head: the rest takes as long as the caller takes to read it. */
function countedCallFrom(
  { errorType, totalMs, tokenMs = 0, queueMs = 0, providerMs = 0 }: EndedCall,
  headMs = totalMs,
) {
  const provider = Math.max(0, providerMs - (totalMs - headMs));
  const relay = Math.max(0, headMs - tokenMs - queueMs - provider);
  return {
    isError: errorType !== undefined,
    times: { total: headMs, relay, queue: queueMs, token: tokenMs, provider },
  };
}

/**
 * The provider's time without the wait in the queue, which is part of the measured time. Includes the body of a stream:
 * after the head the relay only passes on what arrives, as fast as the provider sends and the caller reads.
 */
function providerMsFrom({ totalMs, headMs = totalMs }: CallRecord, providerMs: number, queueMs: number): number {
  return providerMs - queueMs + totalMs - headMs;
}

function endFrom(outcome: Outcome) {
  const message = outcome.result === "error" ? outcome.message : undefined;
  return { response: outcome.answer && responseFrom(outcome.answer), message };
}

function responseFrom({ statusCode, headers, data }: Answer): ResponseToCapture {
  return { statusCode, headers, body: bytesOf(data) };
}

function bytesOf(data: AnswerData): Uint8Array {
  switch (data.kind) {
    case "empty":
      return new Uint8Array();
    case "text":
      return Buffer.from(data.text);
    case "json":
      return data.text.concat();
    case "utf8":
    case "binary":
    case "body":
      return data.bytes.concat();
  }
}

/** Where a call goes, without the values of its query. */
interface CallTarget {
  readonly path: string;
  readonly queryKeys: readonly string[];
}

/** Longer paths are truncated, so that a record stays small. */
const MAX_PATH_LENGTH = 1024;
/** Most query keys in a record; more would add nothing. */
const MAX_KEYS = 32;
const MAX_KEY_LENGTH = 64;

const NONE: readonly string[] = Object.freeze([]);

/**
 * Describes the target without what may be secret. Pure. A part of the query without a `=` may be a value, so it is not
 * counted as a key.
 *
 * @param target path and query of the url as checked, before a token is filled in.
 * @param parameters the pairs that the call adds to the query.
 */
function describeTarget(target: string, parameters: ReadonlyArray<readonly [name: string, value: string]>): CallTarget {
  const mark = target.indexOf("?");
  const path = (mark === -1 ? target : target.slice(0, mark)).slice(0, MAX_PATH_LENGTH);
  if (mark === -1 && parameters.length === 0) return { path: copyOf(path), queryKeys: NONE };
  const keys = mark === -1 ? [] : keysOf(target.slice(mark + 1));
  for (const [name] of parameters) keys.push(name);
  const queryKeys = [...new Set(keys)].slice(0, MAX_KEYS).map((key) => copyOf(key.slice(0, MAX_KEY_LENGTH)));
  return { path: copyOf(path), queryKeys };
}

/** Copies text that waits to be written: a slice would keep the whole longer string alive. */
function copyOf(part: string): string {
  return JSON.parse(JSON.stringify(part)) as string;
}

function keysOf(query: string): string[] {
  return query
    .split("&")
    .map((part) => part.slice(0, Math.max(0, part.indexOf("="))))
    .filter((key) => key !== "");
}

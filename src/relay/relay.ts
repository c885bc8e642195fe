import { causeOf } from "../telemetry/log.js";
import type { Upstream, UpstreamAnswer } from "../upstream/request.js";
import { type AllowanceOptions, requireAllowedCall } from "./allowed-call.js";
import { answerFromUpstream } from "./answer.js";
import type { Call, CallOrigin } from "./call.js";
import { type ErrorOutcome, type Outcome, outcomeFromAnswer, outcomeFromError, outcomeFromFailure } from "./outcome.js";
import type { RedactorFor } from "./redactors.js";
import { type Sender, sendWithToken, type TokenOptions } from "./send-with-token.js";
import { type StreamPart, streamCall } from "./stream.js";
import type { StreamGarbage } from "./stream-garbage.js";
import type { CallTrace, RelayLog } from "./trace.js";

/** What a call needs; everything is a value or an interface, so that the use case knows no protocol and no store. */
export interface RelayOptions extends AllowanceOptions, TokenOptions {
  readonly upstream: Upstream;
  readonly redactorFor: RedactorFor;
  readonly streamGarbage: StreamGarbage;
  readonly log: RelayLog;
}

/** The use case: one call at a provider, for one user of one application. */
export interface Relay {
  /** Never rejects: whatever happens becomes an outcome, and one log line. */
  perform(call: Call): Promise<Outcome>;
  /**
   * The same call, whose answer is handed on as it comes. Never throws: a failure is the last part. To be read to its end
   * or left by `return()`, so that the log line is written and the provider's socket let go.
   */
  stream(call: Call): AsyncGenerator<StreamPart, void, undefined>;
  /** The outcome of what could not even be read as a call. */
  refuse(origin: CallOrigin, error: unknown): ErrorOutcome;
}

/** Every protocol calls this, and nothing else, to perform a call. */
export function createRelay(options: RelayOptions): Relay {
  const sender: Sender<UpstreamAnswer> = {
    send: (request, { call, trace }) => options.upstream.send(request, call, trace),
    discard: () => {},
  };
  return {
    async perform(call) {
      const trace = options.log.begin(call, "Call");
      let outcome: Outcome;
      try {
        outcome = await relay(options, sender, call, trace);
      } catch (error) {
        trace.cause = causeOf(error);
        outcome = outcomeFromFailure(call, error, options.log.fault);
      }
      options.log.call(trace, outcome);
      return outcome;
    },
    stream: (call) => streamCall(options, call),
    refuse(origin, error) {
      const outcome = outcomeFromError(origin.callId, error, options.log.fault);
      options.log.call(options.log.begin(origin, origin.surface === "stream" ? "CallStream" : "Call"), outcome);
      return outcome;
    },
  };
}

/** One call, top to bottom. */
async function relay(
  options: RelayOptions,
  sender: Sender<UpstreamAnswer>,
  call: Call,
  trace: CallTrace,
): Promise<Outcome> {
  const allowed = await requireAllowedCall(options, call, trace);
  const { answer, secrets } = await sendWithToken(options, allowed, sender);
  const form = call.responseMode === "body" ? "body" : allowed.checked.answerAs;
  const large = { turns: options.turns, signal: call.signal, memory: call.memory };
  const mapped = answerFromUpstream(answer, form, options.redactorFor(secrets), large);
  return outcomeFromAnswer(call.callId, mapped instanceof Promise ? await mapped : mapped);
}

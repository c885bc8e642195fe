import { causeOf } from "../telemetry/log.js";
import type { Steps } from "../turns.js";
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
    async perform<Large>(call: Call, largePart?: LargePart<Large>) {
      const trace = options.log.begin(call, "Call");
      let performed: Performed<Large>;
      try {
        const outcome = await relay(options, sender, call, trace);
        const steps = largePart?.(outcome);
        performed = { outcome, large: steps && (await options.turns.take(steps, call)) };
      } catch (error) {
        trace.cause = causeOf(error);
        performed = { outcome: outcomeFromFailure(call, error, options.log.fault), large: undefined };
      }
      options.log.call(trace, performed.outcome);
      return performed;
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
  const large = { turns: options.turns, signal: call.signal, deadline: call.deadline, memory: call.memory };
  const mapped = answerFromUpstream(answer, form, options.redactorFor(secrets), large);
  return outcomeFromAnswer(call.callId, mapped instanceof Promise ? await mapped : mapped);
}

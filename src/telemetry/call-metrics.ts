import type { CallRecord } from "./call-log.js";
import {
  countsOf,
  createObservations,
  type HistogramOptions,
  histogramOf,
  type Metric,
  type Observations,
  OTHER,
  observe,
} from "./metric.js";

/** Counts and times of calls. */
export interface CallMetrics {
  add(call: CallRecord): void;
  read(): readonly Metric[];
}

const CALLS = { name: "relay_calls_total", help: "Calls, by outcome." };

/** From a provider next door to the longest deadline. */
const CALL_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const WHOLE: HistogramOptions = {
  name: "relay_call_duration_seconds",
  help: "Duration of whole calls, from the request's headers; for a streamed answer, until its headers.",
  bounds: CALL_BOUNDS,
};
const PROVIDER: HistogramOptions = {
  name: "relay_call_provider_duration_seconds",
  help: "Time that calls spent waiting for the provider; for a streamed answer, until its headers.",
  bounds: CALL_BOUNDS,
};
const OWN: HistogramOptions = {
  name: "relay_call_relay_duration_seconds",
  help: "Time that calls spent in the relay: reading the request, checks, store, answer; without the wait for a token refresh.",
  bounds: [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5],
};

/** Stands for a provider that there is not, and for the error of a call that has none. */
const UNKNOWN = "unknown";
const NONE = "none";

/** By the first digit of the status. */
const STATUS_CLASSES = [OTHER, "1xx", "2xx", "3xx", "4xx", "5xx"];

/**
 * Providers that are told apart: several times what the catalogue and an operator's files have. Names come from there,
 * and nothing a caller sends makes one; this is for the day on which that changes.
 */
const MAX_PROVIDERS = 1000;

interface ProviderFigures {
  readonly ends: Map<string, End>;
  /** Calls mostly end like the one before. */
  lastEnd: End;
  readonly whole: Observations;
  readonly provider: Observations;
  readonly own: Observations;
}

interface End {
  readonly labels: Readonly<Record<"provider" | "surface" | "status_class" | "error_type", string>>;
  value: number;
}

/** What no call ends like. */
const NO_END: End = { labels: { provider: "", surface: "", status_class: "", error_type: "" }, value: 0 };

/** Nothing counted yet. Two look-ups for each call; labels are names of the catalogue and of the contract alone. */
export function createCallMetrics(): CallMetrics {
  const providers = new Map<string, ProviderFigures>();
  return {
    add(call) {
      const name = nameOf(providers, call.provider ?? UNKNOWN);
      const figures = figuresOf(providers, name);
      endOf(figures, name, call).value += 1;
      const wholeMs = call.headMs ?? call.totalMs;
      observe(WHOLE, figures.whole, wholeMs);
      observe(OWN, figures.own, Math.max(0, wholeMs - (call.providerMs ?? 0) - (call.tokenMs ?? 0)));
      // A call that was refused has asked no provider.
      if (call.providerMs !== undefined) observe(PROVIDER, figures.provider, call.providerMs);
    },
    read() {
      const all = [...providers];
      const series = (pick: (figures: ProviderFigures) => Observations) =>
        all.map(([provider, figures]) => [{ provider }, pick(figures)] as const);
      return [
        countsOf(
          CALLS,
          all.flatMap(([, { ends }]) => [...ends.values()].map(({ labels, value }) => ({ labels, value }))),
        ),
        histogramOf(
          WHOLE,
          series(({ whole }) => whole),
        ),
        histogramOf(
          PROVIDER,
          series(({ provider }) => provider),
        ),
        histogramOf(
          OWN,
          series(({ own }) => own),
        ),
      ];
    },
  };
}

function nameOf(providers: ReadonlyMap<string, ProviderFigures>, name: string): string {
  return providers.size < MAX_PROVIDERS || providers.has(name) ? name : OTHER;
}

function figuresOf(providers: Map<string, ProviderFigures>, name: string): ProviderFigures {
  const known = providers.get(name);
  if (known !== undefined) return known;
  const made: ProviderFigures = {
    ends: new Map(),
    lastEnd: NO_END,
    whole: createObservations(WHOLE),
    provider: createObservations(PROVIDER),
    own: createObservations(OWN),
  };
  providers.set(name, made);
  return made;
}

function endOf(figures: ProviderFigures, provider: string, { surface, status, errorType = NONE }: CallRecord): End {
  const statusClass = STATUS_CLASSES[Math.floor(status / 100)] ?? OTHER;
  const { labels: last } = figures.lastEnd;
  if (last.surface === surface && last.status_class === statusClass && last.error_type === errorType)
    return figures.lastEnd;
  const key = `${surface} ${statusClass} ${errorType}`;
  const labels = { provider, surface, status_class: statusClass, error_type: errorType };
  const end = figures.ends.get(key) ?? { labels, value: 0 };
  figures.ends.set(key, end);
  figures.lastEnd = end;
  return end;
}

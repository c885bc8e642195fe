import { type Logger, levels, symbols } from "pino";
import { countsOf, createObservations, histogramOf, type Metric, type Observations, OTHER, observe } from "./metric.js";
import { METRICS } from "./metric-list.js";

/**
 * What is told of a call, in its log line and elsewhere: an allow-list of names and numbers. None is a value that a caller
 * or a provider chose, but for the two ids by which a caller finds its own request again.
 */
export interface CallRecord {
  readonly callId: string;
  /** The caller's own x-request-id, where it sent one: visible ASCII, 128 characters at most. */
  readonly requestId: string | undefined;
  /** 32 hex digits, where the call belongs to a trace (W3C Trace Context). */
  readonly traceId: string | undefined;
  readonly surface: string;
  /** The application's id; undefined when the public key names none. */
  readonly applicationId: string | undefined;
  /** The provider's name; undefined when there is no such provider. */
  readonly provider: string | undefined;
  /** The HTTP method sent, or undefined when the call got no further than its format. */
  readonly method: string | undefined;
  /** The provider origin the call went to. */
  readonly origin: string | undefined;
  readonly status: number;
  readonly errorType: string | undefined;
  /** The rule that allowed the url, or that refused url or caller. */
  readonly rule: string | undefined;
  /** Code or class of the error behind a failure, such as ECONNREFUSED. */
  readonly cause: string | undefined;
  /** Milliseconds: the whole call, until the head of a streamed answer, and the parts spent waiting for token and provider. */
  readonly totalMs: number;
  readonly headMs: number | undefined;
  readonly tokenMs: number | undefined;
  readonly providerMs: number | undefined;
  readonly requestBytes: number;
  readonly responseBytes: number;
}

/** Writes the line of one call. */
type CallLog = (record: CallRecord) => void;

/**
 * What a pino logger puts a line together from, under pino's own names: exported as `symbols`, but free to change with any
 * version. No line of Node.js up to 26 writes log lines itself.
 */
interface PinoParts {
  readonly [symbols.lsCacheSym]: Readonly<Record<number, string>>;
  readonly [symbols.timeSym]: () => string;
  readonly [symbols.chindingsSym]: string;
  readonly [symbols.streamSym]: { write(line: string): void };
}

const INFO: number = levels.values["info"] ?? 30;

/** One `call` line per call at level info, as the logger itself would write it; costs a comparison when the level is off. */
export function createCallLog(logger: Logger): CallLog {
  const parts = logger as unknown as PinoParts;
  return (record) => {
    if (!logger.isLevelEnabled("info")) return;
    const before = parts[symbols.lsCacheSym][INFO] + parts[symbols.timeSym]() + parts[symbols.chindingsSym];
    parts[symbols.streamSym].write(`${before}${callMembers(record)},"msg":"call"}\n`);
  };
}

/**
 * The members of a call's log line as JSON, each with a comma before it. Pure.
 *
 * Written out, since every call has one: 0.3 µs, where JSON.stringify takes 1.6 and pino itself 2.4, of the 62 of a call. The
 * texts are ids, names and words that nobody outside chose, so that nothing in them needs to be escaped; but for the
 * cause, which may be the class of any error, and the caller's own id of its request.
 */
function callMembers(record: CallRecord): string {
  return (
    `,"callId":"${record.callId}"` +
    quoted("requestId", record.requestId) +
    member("traceId", record.traceId) +
    `,"surface":"${record.surface}"` +
    member("applicationId", record.applicationId) +
    member("provider", record.provider) +
    member("method", record.method) +
    member("origin", record.origin) +
    `,"status":${record.status}` +
    member("errorType", record.errorType) +
    member("rule", record.rule) +
    quoted("cause", record.cause) +
    `,"totalMs":${tenthsText(record.totalMs)}` +
    time("headMs", record.headMs) +
    // Nearly always there is no wait.
    (record.tokenMs === undefined || record.tokenMs < 0.05 ? "" : time("tokenMs", record.tokenMs)) +
    time("providerMs", record.providerMs) +
    `,"requestBytes":${record.requestBytes},"responseBytes":${record.responseBytes}`
  );
}

function member(name: string, value: string | undefined): string {
  return value === undefined ? "" : `,"${name}":"${value}"`;
}

/** Whatever text it is. */
function quoted(name: string, value: string | undefined): string {
  return value === undefined ? "" : `,"${name}":${JSON.stringify(value)}`;
}

function time(name: string, ms: number | undefined): string {
  return ms === undefined ? "" : `,"${name}":${tenthsText(ms)}`;
}

/** To a tenth. Two integers: finding the shortest text of a fraction takes longer than the rest of the line. */
function tenthsText(ms: number): string {
  const tenths = Math.round(ms * 10);
  const rest = tenths % 10;
  return rest === 0 ? `${tenths / 10}` : `${(tenths - rest) / 10}.${rest}`;
}

/** Counts and times of calls. */
interface CallMetrics {
  add(call: CallRecord): void;
  read(): readonly Metric[];
}

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
      observe(METRICS.callDuration, figures.whole, wholeMs);
      observe(
        METRICS.callRelayDuration,
        figures.own,
        Math.max(0, wholeMs - (call.providerMs ?? 0) - (call.tokenMs ?? 0)),
      );
      // A call that was refused has asked no provider.
      if (call.providerMs !== undefined) observe(METRICS.callProviderDuration, figures.provider, call.providerMs);
    },
    read() {
      const all = [...providers];
      const series = (pick: (figures: ProviderFigures) => Observations) =>
        all.map(([provider, figures]) => [{ provider }, pick(figures)] as const);
      return [
        countsOf(
          METRICS.calls,
          all.flatMap(([, { ends }]) => [...ends.values()].map(({ labels, value }) => ({ labels, value }))),
        ),
        histogramOf(
          METRICS.callDuration,
          series(({ whole }) => whole),
        ),
        histogramOf(
          METRICS.callProviderDuration,
          series(({ provider }) => provider),
        ),
        histogramOf(
          METRICS.callRelayDuration,
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
    whole: createObservations(METRICS.callDuration),
    provider: createObservations(METRICS.callProviderDuration),
    own: createObservations(METRICS.callRelayDuration),
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

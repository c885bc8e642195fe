import { type Logger, levels, symbols } from "pino";
import { countsOf, createObservations, histogramOf, type Observations, OTHER, observe } from "./metric.js";
import { METRICS } from "./metric-list.js";

/**
 * What log, metrics and traces report of a call: an allow-list of names and numbers. None is a value chosen by a caller
 * or a provider, except the two ids by which a caller finds its own request: `requestId` and `traceId`.
 */
export interface CallRecord {
  readonly callId: string;
  /** The caller's own x-request-id, if it sent one: visible ASCII, 128 characters at most. */
  readonly requestId: string | undefined;
  /** 32 hex digits, if the call belongs to a trace (W3C Trace Context). */
  readonly traceId: string | undefined;
  readonly surface: string;
  /** The application's id; undefined when the public key is unknown. */
  readonly applicationId: string | undefined;
  /** The provider's name; undefined when there is no such provider. */
  readonly provider: string | undefined;
  /** The HTTP method sent; undefined when the call was malformed. */
  readonly method: string | undefined;
  /** The provider origin the call went to. */
  readonly origin: string | undefined;
  readonly status: number;
  readonly errorType: string | undefined;
  /** The rule that allowed the url, or that refused url or caller. */
  readonly rule: string | undefined;
  /** Code or class of the error behind a failure, such as ECONNREFUSED. */
  readonly cause: string | undefined;
  /**
   * Milliseconds: the whole call, the time until the head of a streamed answer, and the waits for token and provider.
   */
  readonly totalMs: number;
  readonly headMs: number | undefined;
  readonly tokenMs: number | undefined;
  readonly providerMs: number | undefined;
  readonly requestBytes: number;
  readonly responseBytes: number;
}

/**
 * The parts from which a pino logger builds a line. Their keys are exported as `symbols`, but may change with any
 * version of pino. Node.js up to version 26 has no logger of its own.
 */
interface PinoParts {
  readonly [symbols.lsCacheSym]: Readonly<Record<number, string>>;
  readonly [symbols.timeSym]: () => string;
  readonly [symbols.chindingsSym]: string;
  readonly [symbols.streamSym]: { write(line: string): void };
}

const INFO: number = levels.values["info"] ?? 30;

/** Writes one `call` line per call at level info, as pino would. Costs one comparison when the level is off. */
export function createCallLog(logger: Logger): (record: CallRecord) => void {
  const parts = logger as unknown as PinoParts;
  return (record) => {
    if (!logger.isLevelEnabled("info")) return;
    const before = parts[symbols.lsCacheSym][INFO] + parts[symbols.timeSym]() + parts[symbols.chindingsSym];
    parts[symbols.streamSym].write(`${before}${callMembers(record)},"msg":"call"}\n`);
  };
}

/**
 * The members of a call's log line as JSON, each preceded by a comma. Pure.
 *
 * Written by hand, because every call has one: 0.3 µs of a call's 62, where JSON.stringify takes 1.6 and pino itself
 * 2.4. The values are ids, names and words that no outsider chose, so they need no escaping. The exceptions are the
 * cause, which may be the class of any error, and the caller's own request id.
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
    // There is almost never a wait.
    (record.tokenMs === undefined || record.tokenMs < 0.05 ? "" : time("tokenMs", record.tokenMs)) +
    time("providerMs", record.providerMs) +
    `,"requestBytes":${record.requestBytes},"responseBytes":${record.responseBytes}`
  );
}

function member(name: string, value: string | undefined): string {
  return value === undefined ? "" : `,"${name}":"${value}"`;
}

/** For a value that may need escaping. */
function quoted(name: string, value: string | undefined): string {
  return value === undefined ? "" : `,"${name}":${JSON.stringify(value)}`;
}

function time(name: string, ms: number | undefined): string {
  return ms === undefined ? "" : `,"${name}":${tenthsText(ms)}`;
}

/** Rounds to a tenth. Prints two integers, since printing a fraction takes longer than the rest of the line. */
function tenthsText(ms: number): string {
  const tenths = Math.round(ms * 10);
  const rest = tenths % 10;
  return rest === 0 ? `${tenths / 10}` : `${(tenths - rest) / 10}.${rest}`;
}

/** Labels for a provider that does not exist and for the error type of a call without an error. */
const UNKNOWN = "unknown";
const NONE = "none";

/** Indexed by the first digit of the status. */
const STATUS_CLASSES = [OTHER, "1xx", "2xx", "3xx", "4xx", "5xx"];

/**
 * Most providers with series of their own: several times what the catalogue and an operator's files hold. A caller
 * cannot add a name today; the limit guards against a later change.
 */
const MAX_PROVIDERS = 1000;

interface ProviderFigures {
  readonly ends: Map<string, End>;
  /** Cached, since most calls end like the one before. */
  lastEnd: End;
  readonly whole: Observations;
  readonly provider: Observations;
  readonly own: Observations;
}

interface End {
  readonly labels: Readonly<Record<"provider" | "surface" | "status_class" | "error_type", string>>;
  value: number;
}

/** Matches no call. */
const NO_END: End = { labels: { provider: "", surface: "", status_class: "", error_type: "" }, value: 0 };

/** Counts and durations of calls. Two look-ups per call. Labels come only from the catalogue and the contract. */
export function createCallMetrics() {
  const providers = new Map<string, ProviderFigures>();
  return {
    add(call: CallRecord): void {
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
      // A refused call never reached a provider.
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

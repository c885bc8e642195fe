import { type Logger, levels, symbols } from "pino";
import { createCounter, createHistogram } from "./metric.js";
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
const STATUS_CLASSES = ["other", "1xx", "2xx", "3xx", "4xx", "5xx"];

/** Counts and durations of calls. Labels come only from the catalogue and the contract. */
export function createCallMetrics() {
  const calls = createCounter(METRICS.calls);
  const whole = createHistogram(METRICS.callDuration);
  const ofProvider = createHistogram(METRICS.callProviderDuration);
  const own = createHistogram(METRICS.callRelayDuration);
  return {
    add(call: CallRecord): void {
      const { provider = UNKNOWN, surface, status, errorType = NONE, providerMs, tokenMs = 0 } = call;
      const statusClass = STATUS_CLASSES[Math.floor(status / 100)] ?? "other";
      calls.add({ provider, surface, status_class: statusClass, error_type: errorType });
      const wholeMs = call.headMs ?? call.totalMs;
      whole.observe({ provider }, wholeMs);
      own.observe({ provider }, Math.max(0, wholeMs - (providerMs ?? 0) - tokenMs));
      // A refused call never reached a provider.
      if (providerMs !== undefined) ofProvider.observe({ provider }, providerMs);
    },
    read: () => [calls, whole, ofProvider, own].map((metric) => metric.read()),
  };
}

/** Which trace a request belongs to, as its caller says (W3C Trace Context). */
export interface TraceContext {
  /** 32 lower-case hex digits, not all zero. */
  readonly traceId: string;
  /** The caller's span: 16 lower-case hex digits, not all zero. */
  readonly parentId: string;
  /** Bits 0 (sampled) and 1 (random trace id); others are not known and not passed on. */
  readonly flags: number;
  /** `tracestate`, checked; undefined when there is none that is well formed. */
  readonly state: string | undefined;
}

/** What the standard makes everybody pass on (section 3.3.1.5); more is a caller's way to make us carry things. */
const MAX_STATE_LENGTH = 512;
const MAX_STATE_MEMBERS = 32;
const MAX_PARENT_LENGTH = 512;
const KNOWN_FLAGS = 0b11;

const PARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const ALL_ZERO = /^0+$/;
/** Section 3.3.1.3.1; a tenant's key may begin with a digit. */
const STATE_KEY = /^(?:[a-z][\da-z_*/-]{0,255}|[\da-z][\da-z_*/-]{0,240}@[a-z][\da-z_*/-]{0,13})$/;
/** Section 3.3.1.3.2. */
const STATE_VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * Reads the fields of a request. Pure. Undefined when there is no traceparent or a malformed one; a malformed tracestate
 * is left out (W3C Trace Context, sections 3.2.2 and 3.3.1). Fields that came twice are read as they were joined by `, `.
 */
export function parseTraceContext(
  traceparent: string | undefined,
  tracestate: string | undefined,
): TraceContext | undefined {
  if (traceparent === undefined || traceparent.length > MAX_PARENT_LENGTH) return undefined;
  const [, version, traceId = "", parentId = "", flags = "", rest] = PARENT.exec(traceparent) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (ALL_ZERO.test(traceId) || ALL_ZERO.test(parentId)) return undefined;
  return { traceId, parentId, flags: Number.parseInt(flags, 16) & KNOWN_FLAGS, state: parseState(tracestate) };
}

/** The fields of a request that goes on with it (version 00). */
export function fieldsFromTraceContext(context: TraceContext): ReadonlyArray<readonly [name: string, value: string]> {
  const flags = context.flags.toString(16).padStart(2, "0");
  const parent = ["traceparent", `00-${context.traceId}-${context.parentId}-${flags}`] as const;
  return context.state === undefined ? [parent] : [parent, ["tracestate", context.state]];
}

function parseState(text: string | undefined): string | undefined {
  if (text === undefined || text.length > MAX_STATE_LENGTH) return undefined;
  // An empty member says nothing (section 3.3.1.2).
  const members = text
    .split(",")
    .map((member) => member.trim())
    .filter(Boolean);
  const keys = new Set(members.map(stateKeyOf));
  const isGood = members.length <= MAX_STATE_MEMBERS && keys.size === members.length && !keys.has(undefined);
  return isGood && members.length > 0 ? members.join(",") : undefined;
}

/** Undefined for a member that is malformed. */
function stateKeyOf(member: string): string | undefined {
  const equals = member.indexOf("=");
  const key = member.slice(0, Math.max(0, equals));
  return STATE_KEY.test(key) && STATE_VALUE.test(member.slice(equals + 1)) ? key : undefined;
}

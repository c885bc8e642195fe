import { describe, expect, it } from "vitest";
import { fieldsFromTraceContext, parseTraceContext } from "../../src/telemetry/call-spans.js";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";
const GOOD = `00-${TRACE}-${PARENT}-01`;
const zeros = (count: number) => "0".repeat(count);

describe("parseTraceContext()", () => {
  it.each([
    ["nothing", undefined],
    ["an empty field", ""],
    ["two fields", `${GOOD}, ${GOOD}`],
    ["upper case", GOOD.toUpperCase()],
    ["a version that is forbidden", GOOD.replace("00-", "ff-")],
    ["no version", GOOD.slice(3)],
    ["more than version 00 has", `${GOOD}-00`],
    ["space around it", ` ${GOOD}`],
    ["a short trace id", GOOD.replace(TRACE, TRACE.slice(1))],
    ["a long parent id", GOOD.replace(PARENT, `${PARENT}0`)],
    ["a trace id of zeros", GOOD.replace(TRACE, zeros(32))],
    ["a parent id of zeros", GOOD.replace(PARENT, zeros(16))],
    ["no flags", GOOD.slice(0, -3)],
    ["flags that are no hex", `${GOOD.slice(0, -2)}0x`],
    ["a later version that goes on without a dash", `01${GOOD.slice(2)}00`],
    ["a later version without an end", `01${GOOD.slice(2)}-${"a".repeat(500)}`],
    ["a line feed behind it", `${GOOD}\n`],
  ])("takes %s for no trace", (_what, traceparent) => {
    expect(parseTraceContext(traceparent, "a=1")).toBeUndefined();
  });

  it.each([
    [GOOD, 1],
    [`00-${TRACE}-${PARENT}-00`, 0],
    [`00-${TRACE}-${PARENT}-03`, 3],
    [`00-${TRACE}-${PARENT}-ff`, 3],
    [`01-${TRACE}-${PARENT}-01`, 1],
    [`cc-${TRACE}-${PARENT}-01-what-is-yet-to-come`, 1],
  ])("reads %s", (traceparent, flags) => {
    expect(parseTraceContext(traceparent, undefined)).toEqual({
      traceId: TRACE,
      parentId: PARENT,
      flags,
      state: undefined,
    });
  });

  it.each([
    ["a member without a value", "a"],
    ["an empty value", "a="],
    ["a key in upper case", "A=1"],
    ["a key of 257 characters", `${"a".repeat(257)}=1`],
    ["a tenant without a system", "1a=1"],
    ["a system of 15 characters", `t@${"a".repeat(15)}=1`],
    ["an equals sign in a value", "a=1=2"],
    ["a value of 257 characters", `a=${"1".repeat(257)}`],
    ["a character that is not ASCII", "a=é"],
    ["a control character", "a=1\u0000"],
    ["a key twice", "a=1,a=2"],
    ["33 members", Array.from({ length: 33 }, (_, at) => `a${at}=1`).join(",")],
    ["513 characters", `a=${"1".repeat(255)},b=${"1".repeat(254)}`],
    ["empty members alone", ",,"],
  ])("leaves a tracestate with %s out, and keeps the trace", (_what, tracestate) => {
    expect(parseTraceContext(GOOD, tracestate)).toEqual({
      traceId: TRACE,
      parentId: PARENT,
      flags: 1,
      state: undefined,
    });
  });

  it.each([
    ["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"],
    ["a=1 , ,b=2", "a=1,b=2"],
    ["1t_a-*/@system=x y", "1t_a-*/@system=x y"],
  ])("keeps the tracestate %j", (tracestate, state) => {
    expect(parseTraceContext(GOOD, tracestate)?.state).toBe(state);
  });

  it("is written as it was read", () => {
    const context = parseTraceContext(GOOD, "a=1");
    expect(context && fieldsFromTraceContext(context)).toEqual([
      ["traceparent", GOOD],
      ["tracestate", "a=1"],
    ]);
    expect(context && fieldsFromTraceContext({ ...context, state: undefined })).toEqual([["traceparent", GOOD]]);
  });
});

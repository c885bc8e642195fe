import { describe, expect, it } from "vitest";
import { RelayError } from "../../src/model/errors.js";
import { decideHeaders, headerMeant, isDroppedHeader } from "../../src/providers/credential.js";

function namesOf(...names: string[]): string[] {
  return decideHeaders(names.map((name) => [name, "x"])).forwarded.map(([name]) => name);
}

function errorOf(pairs: ReadonlyArray<readonly [string, string]>): RelayError {
  try {
    decideHeaders(pairs);
  } catch (error) {
    if (error instanceof RelayError) return error;
  }
  throw new Error("no RelayError");
}

/** Threats H01-H22. */
const dropped = [
  ["Authorization", "authorization", "AUTHORIZATION"],
  ["Host"],
  ["Content-Length", "content-length"],
  ["Transfer-Encoding"],
  ["Connection", "Keep-Alive", "TE", "Trailer", "Upgrade", "HTTP2-Settings", "Expect", "Max-Forwards"],
  ["Proxy-Authorization", "proxy-authenticate", "Proxy-Connection", "Proxy-X"],
  ["Cookie", "COOKIE", "Cookie2", "Set-Cookie", "set-cookie2"],
  ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "x-forwarded-uri"],
  ["X-Real-IP", "X-Client-IP", "X-Cluster-Client-IP", "True-Client-IP", "CF-Connecting-IP", "CF-Ray"],
  ["X-Original-URL", "X-Original-Host", "X-Rewrite-URL"],
  ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"],
  ["X-Envoy-External-Address", "x-envoy-original-path"],
  ["Origin", "Referer", "Sec-Fetch-Site", "sec-ch-ua"],
  ["Accept-Encoding"],
  ["X-Partner-Key"],
  // What CGI takes for the same.
  ["Content_Length", "Transfer_Encoding", "X_Forwarded_For", "x-forwarded_for", "SET_COOKIE", "X_HTTP_Method_Override"],
];

describe("decideHeaders()", () => {
  it("forwards nothing for nothing", () => {
    expect(decideHeaders([])).toEqual({ forwarded: [], payloadType: undefined });
  });

  it.each(dropped.map((names) => [names]))("drops %j", (names) => {
    expect(namesOf(...names)).toEqual([]);
    expect(names.every((name) => isDroppedHeader(headerMeant(name.toLowerCase())))).toBe(true);
  });

  it("forwards the rest as written", () => {
    const names = [
      "X-Restli-Protocol-Version",
      "range",
      "If-None-Match",
      "Accept",
      "Content-Type",
      "User-Agent",
      "ETag",
    ];
    const alike = ["x_a", "X_Api_Key", "X-Forwarded", "Proxy", "Hosts", "Security", "CFX-a", "X-Host", "constructor"];
    expect(namesOf(...names, ...alike)).toEqual([...names, ...alike]);
  });

  it.each([
    ["X-Pinc-Response-Data-At", "x-payload-type"],
    ["x_pinc_response_data_at", "X_Payload_Type"],
  ])("consumes the special headers, also as %s", (dataAt, payloadType) => {
    const pairs = [
      [dataAt, " rows.0.data "],
      [payloadType, "file"],
      ["X-A", "1"],
    ] as const;
    expect(decideHeaders(pairs)).toEqual({ forwarded: [["X-A", "1"]], payloadType: "file" });
  });

  it("trims values and keeps the space and TAB within", () => {
    const { forwarded } = decideHeaders([
      ["x-a", "\t a \t b  "],
      ["x-b", ""],
    ]);
    expect(forwarded).toEqual([
      ["x-a", "a \t b"],
      ["x-b", ""],
    ]);
  });

  it.each([
    "",
    "x a",
    "x:a",
    "x\r\nEvil",
    "Authorization ",
    "_a",
    "-a",
    "x.a",
    "__proto__",
    "\u00e9",
    "a".repeat(65),
    "(x)",
  ])("refuses the name %j without naming it", (name) => {
    const error = errorOf([[name, "1"]]);
    expect(error.reason).toBe("CALL_FORMAT_ERROR");
    expect(error.message).toBe(
      "headers contains a name that is not 1 to 64 letters, digits, '-' and '_', starting with a letter or digit; correct it.",
    );
  });

  it.each([
    "1\r\nAuthorization: Bearer EVIL",
    "1\nb",
    "a\u0000b",
    "a\u007f",
    "\u560d\u560aX: y",
    "\u{1f600}",
    "\u00e9",
    "a\u0085",
    "\u2028",
    "\ud800",
  ])("refuses the value %j, naming the header only", (value) => {
    const error = errorOf([["x-a", value]]);
    expect(error.reason).toBe("CALL_FORMAT_ERROR");
    expect(error.message).toBe("headers.x-a contains a character that is not printable ASCII; encode or remove it.");
    expect(errorOf([["Cookie", value]]).message).toContain("headers.Cookie");
  });

  it("refuses a name given twice in different case, special ones included", () => {
    const twice = (first: string, second: string) =>
      errorOf([
        [first, "1"],
        [second, "2"],
      ]).message;
    expect(twice("X-A", "x-a")).toBe("headers contains x-a twice; send it once.");
    expect(twice("x-api_key", "X_API-KEY")).toBe("headers contains X_API-KEY twice; send it once.");
    expect(twice("x-payload-type", "X-Payload-Type")).toContain("twice");
  });

  it("bounds count and length", () => {
    const many = (count: number) => Array.from({ length: count }, (_, at) => [`x-${at}`, "1"] as const);
    expect(decideHeaders(many(64)).forwarded).toHaveLength(64);
    expect(errorOf(many(65)).message).toContain("64");
    expect(decideHeaders([["x-a", "a".repeat(8_189)]]).forwarded).toHaveLength(1);
    expect(errorOf([["x-a", "a".repeat(8_190)]]).message).toContain("8 KiB");
    expect(errorOf([["cookie", "a".repeat(8_190)]]).message).toContain("8 KiB");
  });
});

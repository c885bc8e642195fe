import { describe, expect, it } from "vitest";
import { RelayError } from "../../src/model/errors.js";
import { connectSessionQueryFrom, parsePageQuery } from "../../src/pages/page-request.js";

const reasonOf = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    if (error instanceof RelayError) return error.reason;
    throw error;
  }
  return "none";
};

describe("parsePageQuery()", () => {
  it.each<[string, string | undefined]>([
    ["", undefined],
    ["a", undefined],
    ["a=", undefined],
    ["a=1", "1"],
    ["b=2&a=1", "1"],
    ["a=1%2B+%C3%A9", "1+ é"],
    ["%61=1", "1"],
    ["a=%zz", "%zz"],
    ["a=1=2", "1=2"],
    ["a=__proto__", "__proto__"],
    [`a=${"x".repeat(4096)}`, "x".repeat(4096)],
  ])("reads %s", (text, value) => {
    expect(parsePageQuery(text).get("a")).toBe(value);
  });

  it.each([
    "a=1&a=1",
    "a=1&%61=2",
    "a=&a=",
    `a=${"x".repeat(4097)}`,
    "a=%FF",
    "a=%EF%BF%BD",
    "a=%C0%AF",
    "a=%ED%A0%80",
    "a=\u00e9",
    "a=\u0000",
    "a= ",
  ])("refuses %j", (text) => {
    expect(reasonOf(() => parsePageQuery(text).get("a"))).toBe("CALL_FORMAT_ERROR");
  });

  it("minds only what is asked for", () => {
    expect(parsePageQuery("a=1&utm=%FF&utm=2").get("a")).toBe("1");
  });

  it.each(["private_key=x", "a=1&private_key=x", "private_key=&private_key=x", "%70rivate_key=x"])(
    "refuses a private key before anything else: %s",
    (text) => {
      expect(reasonOf(() => parsePageQuery(text))).toBe("CALLER_NOT_ALLOWED");
    },
  );

  it("picks what is there, and only once", () => {
    expect(parsePageQuery("shop=a&other=b").pick(["shop", "region"])).toEqual(new Map([["shop", "a"]]));
    expect(reasonOf(() => parsePageQuery("shop=a&shop=b").pick(["shop"]))).toBe("CALL_FORMAT_ERROR");
  });
});

describe("connectSessionQueryFrom()", () => {
  it.each<[string, readonly string[]]>([
    ["", []],
    ["providers=", []],
    ["providers=a", ["a"]],
    ["providers=a,%20b,,c", ["a", "b", "c"]],
  ])("reads the providers of %j", (text, providers) => {
    expect(connectSessionQueryFrom(parsePageQuery(text), "192.0.2.1", true).providers).toEqual(providers);
  });

  it("takes the proof from the query alone", () => {
    const query = parsePageQuery("public_key=p&user_id=u&user_signature=s&origin=o&address=a");
    expect(connectSessionQueryFrom(query, "192.0.2.1", false)).toMatchObject({
      publicKey: "p",
      userId: "u",
      proof: { userSignature: "s", origin: undefined, address: "192.0.2.1" },
      isPage: false,
    });
  });
});

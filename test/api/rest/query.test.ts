import { describe, expect, it } from "vitest";
import { RelayService } from "../../../gen/relay/v1/relay_pb.js";
import { parseCallQuery, routeFromMethod } from "../../../src/api/rest/read-call.js";

const { queryFields, match } = routeFromMethod(RelayService.method.call);
const parse = (query: string) => Object.fromEntries(parseCallQuery(query, queryFields).fields);

describe("parseCallQuery()", () => {
  it.each([
    ["public_key=a&public_key=b", "public_key"],
    ["public_key=a&publicKey=b", "public_key"],
    ["public_key=a&pinc_client_id=b", "public_key"],
    ["public_key[]=a", "public_key"],
    ["public_key[$ne]=", "public_key"],
    ["user_id=%", "user_id"],
    ["user_id=%zz", "user_id"],
    ["user_id=%ff", "user_id"],
    ["%ff=1", "query parameter"],
    [`user_id=${"x".repeat(257)}`, "user_id"],
  ])("refuses %s and names the field", (query, field) => {
    expect(() => parse(query)).toThrow(
      expect.objectContaining({ reason: "CALL_FORMAT_ERROR", message: expect.stringContaining(field) }),
    );
  });

  it.each([
    ["userId=U&pinc_client_id=PUB", { user_id: "U", public_key: "PUB" }],
    ["user_id=a%2Bb%40example.com", { user_id: "a+b@example.com" }],
    ["user_id=a+b", { user_id: "a b" }],
    ["user_id=%00", { user_id: "\0" }],
    ["user_id", { user_id: "" }],
    ["_=1699999999&x[]=1&user_id=1", { user_id: "1" }],
    ["__proto__=1&constructor=2", {}],
    ["provider_name=other&call=x", {}],
    ["", {}],
    ["&&", {}],
  ])("reads %s", (query, fields) => {
    expect(parse(query)).toEqual(fields);
  });

  it("keeps the dotted form apart, in the order written", () => {
    expect(parseCallQuery("body.url=https%3A%2F%2Fa%2F&body.headers.x-a=1&user_id=U", queryFields).dotted).toEqual([
      ["url", "https://a/"],
      ["headers.x-a", "1"],
    ]);
  });
});

describe("routeFromMethod()", () => {
  it("matches the path of the annotation and nothing else", () => {
    expect(match("/oauth/method/github/call")).toEqual(["github"]);
    expect(match("/oauth/method/a%2Fb/call")).toEqual(["a%2Fb"]);
    for (const path of ["/oauth/method//call", "/oauth/method/a/b/call", "/oauth/method/github/call/", "/x", ""]) {
      expect(match(path)).toBeUndefined();
    }
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CallRule, judgeRequest, parseCallRules, writtenFromRule } from "../../src/applications/call-rules.js";

interface Asked {
  readonly method?: string;
  readonly origin?: string;
  readonly headers?: ReadonlyArray<readonly [string, string]>;
}

function verdict(
  rules: unknown,
  target: string,
  { method = "GET", origin = "https://api.example.com", headers = [] }: Asked = {},
) {
  const parsed = parseCallRules(rules);
  if ("problem" in parsed) throw new Error(parsed.problem);
  return judgeRequest(parsed.rules, { method, origin, target, headers });
}

const allows = (path: string, target: string) => verdict([{ paths: [path] }], target).isAllowed;

describe("judgeRequest() with paths", () => {
  it.each([
    ["/user", "/user"],
    ["/user", "/user?a=/../b"],
    ["/repos/acme/*", "/repos/acme/a"],
    ["/repos/acme/*", "/repos/acme/a.b-c_d~e!$&'()*+,=:@"],
    ["/repos/acme/*", "/repos/acme/%C3%A9t%C3%A9%20x"],
    ["/repos/*/issues", "/repos/acme/issues"],
    ["/user/**", "/user"],
    ["/user/**", "/user/a/b/c"],
    ["/**", "/"],
    ["/**", "/a"],
    ["/**/c", "/a/b/c"],
    ["/**/c", "/c/c"],
    ["/a/**/c/**/e", "/a/c/b/c/d/d/e"],
    ["/**/a/*/b", "/a/a/b/a/x/b"],
    ["/items/", "/items/"],
    ["/**/", "/items/1/"],
    ["/", "/"],
    ["/.well-known/x", "/.well-known/x"],
    ["/v1/values:batchGet", "/v1/values:batchGet"],
    ["/a%20b", "/a%20b"],
  ])("lets %s through %s", (path, target) => expect(allows(path, target)).toBe(true));

  it.each([
    ["/**/acme/**", "/repos/acme/"],
    ["/user", "/users"],
    ["/user", "/user/"],
    ["/user", "/User"],
    ["/user", "/u%73er"],
    ["/user", "/"],
    ["/user", "//user"],
    ["/items/", "/items"],
    ["/repos/acme/*", "/repos/acme"],
    ["/repos/acme/*", "/repos/acme/"],
    ["/repos/acme/*", "/repos/acme/a/b"],
    ["/repos/acme/**", "/repos/acme2"],
    ["/repos/acme/**", "/repos/acme/"],
    ["/repos/acme/**", "/repos/acme/a/"],
    ["/repos/acme/**", "/repos/acme//a"],
    ["/repos/acme/**", "/repos/acme;x/a"],
    ["/repos/acme/**", "/repos/acme/a;b=c"],
    ["/repos/acme/**", "/repos/acme/%3Bx"],
    ["/repos/acme/**", "/repos/acme/..%2Fother"],
    ["/repos/acme/**", "/repos/acme/a%2fb"],
    ["/repos/acme/**", "/repos/acme/a%5Cb"],
    ["/repos/acme/**", "/repos/acme/a\\b"],
    ["/repos/acme/**", "/repos/acme/a%00"],
    ["/repos/acme/**", "/repos/acme/a%0d%0a"],
    ["/repos/acme/**", "/repos/acme/%2e%2e/x"],
    ["/repos/acme/**", "/repos/acme/.%2e/x"],
    ["/repos/acme/**", "/repos/acme/../x"],
    ["/repos/acme/**", "/repos/acme/./x"],
    ["/repos/acme/**", "/repos/acme/.../x"],
    ["/repos/acme/**", "/repos/acme/..%20/x"],
    ["/repos/acme/**", "/repos/acme/%20/x"],
    ["/repos/acme/**", "/repos/acme/+/x"],
    ["/repos/acme/**", "/repos/acme/..;/x"],
    ["/repos/acme/**", "/repos/acme/..,/x"],
    ["/repos/acme/**", "/repos/acme/..%7C/x"],
    ["/repos/acme/**", "/repos/acme/..::$DATA/x"],
    ["/repos/acme/**", "/repos/acme/.%EF%B8%8F./x"],
    ["/repos/acme/**", "/repos/acme/.%CD%8F./x"],
    ["/repos/acme/**", "/repos/acme/a?rest_route=/repos/other"],
    ["/repos/acme/**", "/repos/acme/a?b&rest%5Froute=/repos/other"],
    ["/repos/acme/**", "/repos/acme/%252e%252e/x"],
    ["/repos/acme/**", "/repos/acme/a%252Fb"],
    ["/repos/acme/**", "/repos/acme/a%25252Fb"],
    ["/repos/acme/**", "/repos/acme/a%25%32%46b"],
    ["/repos/acme/**", "/repos/acme/a%u002fb"],
    ["/repos/acme/**", "/repos/acme/a%25u002fb"],
    ["/repos/acme/**", "/repos/acme/a%EF%BC%852Fb"],
    ["/repos/acme/**", "/repos/acme/a%c0%afb"],
    ["/repos/acme/**", "/repos/acme/%c0%ae%c0%ae/x"],
    ["/repos/acme/**", "/repos/acme/%zz"],
    ["/repos/acme/**", "/repos/acme/100%"],
    ["/repos/acme/**", "/repos/acme/a%3Fb"],
    ["/repos/acme/**", "/repos/acme/a%23b"],
    ["/repos/acme/**", "/repos/acme/a#b"],
    ["/repos/acme/**", "/repos/acme/%EF%BC%8Fx"],
    ["/repos/acme/**", "/repos/acme/%EF%BC%8E%EF%BC%8E/x"],
    ["/repos/acme/**", "/repos/acme/%E2%88%95x"],
    ["/repos/acme/**", "/repos/acme/.%E2%80%8B./x"],
    ["/repos/acme/**", "/repos/acme/%C2%A5x"],
    ["/repos/acme/**", "/repos/acme/é"],
    ["/repos/acme/**", "/repos/acme/%7B%7Bid_token%7D%7D"],
    ["/repos/acme/**", "repos/acme/a"],
    ["/repos/acme/**", "https://api.example.com/repos/acme/a"],
    ["/repos/acme/**", "*"],
    ["/**", `/${"a/".repeat(256)}a`],
    ["/a/*/c", "/a/b%3F/c"],
  ])("does not let %s through %s", (path, target) => {
    expect(allows(path, target)).toBe(false);
    if (target.startsWith("/")) expect(verdict([{}], target).isAllowed).toBe(true);
  });

  it("says when a path is refused for its spelling, and not for where it leads", () => {
    expect(verdict([{ paths: ["/a/**"] }], "/a/b%2Fc").rule).toBe("ambiguous path");
    expect(verdict([{ paths: ["/a/**"] }], "/b").rule).toBe("no rule");
    expect(verdict([{ paths: ["/b"] }, { paths: ["/a/**"] }], "/a").rule).toBe("rule 2");
  });

  it.each([
    ["many stars", [...new Array(60).fill(["**", "a"]).flat(), "b"], "_method=GET"],
    ["one star before many segments", ["**", ...new Array(120).fill("a"), "b"], "_method=GET"],
    ["many method words", ["**"], new Array(695).fill("method=GET").join("&")],
    ["many methods", ["**"], "method=GET&method=PUT&method=POST&method=PATCH&method=LOCK"],
  ])("reads each segment of a pattern once a request, for %s", (_, pattern, query) => {
    let reads = 0;
    const counted = new Proxy(pattern, {
      get(segments, at, receiver) {
        if (typeof at === "string" && /^\d+$/.test(at)) reads++;
        return Reflect.get(segments, at, receiver);
      },
    });
    const rules: CallRule[] = [{ methods: undefined, hosts: undefined, paths: [counted] }];
    const target = `/${"a/".repeat(255)}a?${query}`;
    judgeRequest(rules, { method: "GET", origin: "https://api.example.com", target, headers: [] });
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThanOrEqual(pattern.length);
  });

  it("tries every way to part a path at stars", () => {
    expect(allows(`${"/**/a".repeat(60)}/b`, `/${"a/".repeat(255)}a`)).toBe(false);
    expect(allows(`${"/**/a".repeat(60)}/b`, `/${"a/".repeat(255)}b`)).toBe(true);
  });

  it.each([
    "Destination",
    "Destination-Account",
    "X-Amz-Copy-Source",
    "x_ms_rename_source",
    "X-QS-Fetch-Source",
    "X-Copy-From",
    "X-Copy-From-Account",
    "X-Object-Manifest",
    "X-Symlink-Target",
    "X-Symlink-Target-Account",
    "x-oss-symlink-target",
    "X-Versions-Location",
    "X-History-Location",
  ])("asks for a rule without paths when %s names a second place", (name) => {
    const asked = { method: "COPY", headers: [[name, "https://api.example.com/other"]] } as const;
    expect(verdict([{ paths: ["/**"] }], "/a", asked).isAllowed).toBe(false);
    expect(verdict([{ methods: ["COPY"] }], "/a", asked).isAllowed).toBe(true);
  });
});

describe("judgeRequest() with hosts", () => {
  it.each([
    ["api.example.com", "https://api.example.com", true],
    ["api.example.com", "https://api.example.com.evil.test", false],
    ["api.example.com", "https://api.example.com:8443", false],
    ["api.example.com:8443", "https://api.example.com:8443", true],
    ["api.example.com", "https://xapi.example.com", false],
    ["127.0.0.1:8090", "http://127.0.0.1:8090", true],
  ])("%s, and %s: %s", (host, origin, isAllowed) => {
    expect(verdict([{ hosts: [host] }], "/", { origin }).isAllowed).toBe(isAllowed);
  });
});

describe("judgeRequest() with methods", () => {
  const read = [{ methods: ["GET"] }];

  it.each(["POST", "DELETE", "HEAD", "get", "GET ", "OPTIONS"])("does not take %j for GET", (method) => {
    expect(verdict(read, "/", { method }).isAllowed).toBe(false);
  });

  it.each([
    "_method=DELETE",
    "a=b&_method=delete",
    "%5fmethod=DELETE",
    "%5Fmetho%64=DELETE",
    "_method=%44ELETE",
    "_method=D%2545LETE",
    "%255fmethod=DELETE",
    "_method=GET&_method=DELETE",
    "_method[]=DELETE",
    ".method=DELETE",
    "a=1;_method=DELETE",
    "method=delete",
    "%u006dethod=DELETE",
    "httpMethod=PATCH",
    "X-HTTP-Method-Override=PUT",
    "_method=+DELETE+",
    "_METHOD=DELETE",
    "_method=MKCOL",
    "_method=DELETE,GET",
    "_method=GET,%20DELETE",
    "_method=GET%0aDELETE",
    "_method=GET+DELETE",
    "_method=GET%7CDELETE",
    "_method=D.E.L.E.T.E",
    "_method=D%20ELETE",
    "_verb=DELETE",
    "httpVerb=DELETE",
  ])("judges what a provider may read %s as", (query) => {
    expect(verdict(read, `/a?${query}`)).toEqual({ isAllowed: false, rule: "method override" });
    expect(
      verdict([{ methods: ["GET"] }, { methods: ["DELETE", "PATCH", "PUT", "MKCOL"], paths: ["/a"] }], `/a?${query}`)
        .isAllowed,
    ).toBe(true);
    expect(verdict([{}], `/a?${query}`).isAllowed).toBe(true);
  });

  it.each([
    "method=flickr.photos.search",
    "payment_method=card",
    "a=DELETE",
    "_method",
    "_method=",
    "q=%6d",
    "_method=GET",
  ])("lets %s be", (query) => expect(verdict(read, `/a?${query}`).isAllowed).toBe(true));

  it.each(["po%C5%BFt", "%EF%BC%B0OST", "CHECKOUT", "VERSION-CONTROL", "trace", "MKCALENDAR", "BAN"])(
    "judges the method %s, which a call may have or a server know",
    (method) => {
      expect(verdict(read, `/a?_method=${method}`)).toEqual({ isAllowed: false, rule: "method override" });
    },
  );

  it.each(["X-Override-Url", "x-request-uri", "X-HTTP-Path-Override", "X-Rewrite-Path", "Base-Url", "X-Url", "x_host"])(
    "takes no path for sure beside the field %s",
    (name) => {
      expect(verdict([{ paths: ["/a"] }], "/a", { headers: [[name, "/b"]] }).rule).toBe("ambiguous path");
      expect(verdict([{}], "/a", { headers: [[name, "/b"]] }).isAllowed).toBe(true);
    },
  );

  it.each(["X-HTTP-Method-Override", "x_http_method", "X-Method-Override", "http-method", "x-http-verb"])(
    "judges what a provider may read the field %s as",
    (name) => {
      expect(verdict(read, "/", { headers: [[name, "DELETE"]] }).isAllowed).toBe(false);
      expect(verdict(read, "/", { headers: [[name, "DELETE, GET"]] }).isAllowed).toBe(false);
      expect(verdict(read, "/", { headers: [[name, "GET, GET"]] }).isAllowed).toBe(true);
      expect(verdict(read, "/", { headers: [[name, "GET"]] }).isAllowed).toBe(true);
    },
  );
});

describe("judgeRequest() with several members", () => {
  const rules = [
    { methods: ["GET", "HEAD"], hosts: ["api.example.com"], paths: ["/repos/acme/*", "/user/**"] },
    { methods: ["POST"], paths: ["/repos/acme/*"] },
  ];

  it.each([
    ["GET", "/user/repos", true],
    ["HEAD", "/repos/acme/a", true],
    ["POST", "/repos/acme/a", true],
    ["POST", "/user/repos", false],
    ["DELETE", "/repos/acme/a", false],
  ])("%s %s: %s, since one rule must fit whole", (method, target, isAllowed) => {
    expect(verdict(rules, target, { method }).isAllowed).toBe(isAllowed);
  });
});

describe("a pattern", () => {
  it("fits the paths that it fits as a regular expression, however many stars it has", () => {
    const segments = (...texts: string[]) => fc.array(fc.constantFrom(...texts), { maxLength: 5 });
    const paths = fc.tuple(segments("a", "b"), fc.constantFrom("", "/"));
    fc.assert(
      fc.property(
        segments("a", "b", "*", "**", "**"),
        fc.constantFrom("", "/"),
        paths,
        (wanted, end, [names, slash]) => {
          const pattern = `/${wanted.join("/")}${wanted.length > 0 ? end : ""}`;
          const target = `/${names.join("/")}${names.length > 0 ? slash : ""}`;
          const source = pattern.replace(/\/(\*{0,2})(?=\/|$)/g, (all, stars) => SOURCES[stars.length] ?? all);
          const expected = new RegExp(`^${pattern === "/" ? "" : source}$`).test(target === "/" ? "" : target);
          expect(allows(pattern, target)).toBe(expected);
        },
      ),
      { numRuns: 2000 },
    );
  });

  const SOURCES = [undefined, "/[^/]+", "(?:/[^/]+)*"];
});

describe("parseCallRules()", () => {
  it("gives back what was written", () => {
    const written = [{ methods: ["GET"], hosts: ["a.example:8443"], paths: ["/a/*/**", "/"] }, {}];
    const parsed = parseCallRules(written);
    expect("rules" in parsed && parsed.rules.map(writtenFromRule)).toEqual(written);
  });

  it.each<[unknown, string]>([
    [undefined, "a list"],
    [null, "a list"],
    [{}, "a list"],
    ["GET", "a list"],
    [[], "a list"],
    [new Array(101).fill({}), "a list"],
    [[null], "rule 1 that is not an object"],
    [[{}, []], "rule 2 that is not an object"],
    [[{ method: ["GET"] }], "with a member other than"],
    [[{ methods: ["GET"], except: ["/admin"] }], "with a member other than"],
    [[{ __proto__: null, constructor: [] }], "with a member other than"],
    [[{ methods: [] }], "methods are not"],
    [[{ methods: "GET" }], "methods are not"],
    [[{ methods: null }], "methods are not"],
    [[{ methods: ["get"] }], "methods are not"],
    [[{ methods: ["*"] }], "methods are not"],
    [[{ methods: ["FORM"] }], "methods are not"],
    [[{ methods: ["MULTIFORM-POST"] }], "methods are not"],
    [[{ methods: [1] }], "methods are not"],
    [[{ hosts: ["https://a.example"] }], "hosts are not"],
    [[{ hosts: ["A.example"] }], "hosts are not"],
    [[{ hosts: ["*.a.example"] }], "hosts are not"],
    [[{ hosts: ["a.example."] }], "hosts are not"],
    [[{ hosts: ["a.example:443"] }], "hosts are not"],
    [[{ hosts: ["a.example/x"] }], "hosts are not"],
    [[{ hosts: [""] }], "hosts are not"],
    [[{ paths: ["a"] }], "paths are not"],
    [[{ paths: [""] }], "paths are not"],
    [[{ paths: ["/a?b"] }], "paths are not"],
    [[{ paths: ["/a b"] }], "paths are not"],
    [[{ paths: ["/a*"] }], "paths are not"],
    [[{ paths: ["/***"] }], "paths are not"],
    [[{ paths: ["//a"] }], "paths are not"],
    [[{ paths: ["/a/../b"] }], "paths are not"],
    [[{ paths: ["/a%2Fb"] }], "paths are not"],
    [[{ paths: ["/a;b"] }], "paths are not"],
    [[{ paths: [`/${"a".repeat(1024)}`] }], "paths are not"],
  ])("refuses %j", (value, problem) =>
    expect(parseCallRules(value)).toEqual({ problem: expect.stringContaining(problem) }),
  );
});

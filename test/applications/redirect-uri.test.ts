import { describe, expect, it } from "vitest";
import { parseRedirectUri } from "../../src/applications/application.js";

describe("parseRedirectUri()", () => {
  it.each([
    "https://app.example.com/",
    "https://app.example.com/connected?tab=1&x=%20",
    "https://app.example.com:8443/a/b",
    "https://xn--bcher-kva.example/",
    "http://localhost:3000/cb",
    "http://127.0.0.1/cb",
    "http://[::1]:3000/cb",
    "com.example.app:/done",
    "com.example.app://done/x?y=1",
    "com.example.app:///done",
    "com.example-x.app+y:/",
  ])("takes %s as it is", (text) => {
    expect(parseRedirectUri(text)).toEqual({ value: text });
  });

  it.each([
    ["", "https address"],
    ["/relative", "https address"],
    ["//app.example.com/", "https address"],
    ["app.example.com/cb", "https address"],
    ["javascript:alert(1)", "https address"],
    ["JavaScript:alert(1)//x.y:/", "https address"],
    ["data:text/html,x", "https address"],
    ["vbscript:x", "https address"],
    ["blob:https://app.example.com/x", "https address"],
    ["file:///etc/passwd", "https address"],
    ["ftp://app.example.com/", "https address"],
    ["ws://app.example.com/", "https address"],
    ["myapp:/done", "https address"],
    ["com.example.app:done", "https address"],
    ["com.example.app:/done#x", "https address"],
    ["Com.example.app:/done", "https address"],
    [".example.app:/done", "https address"],
    ["com..app:/done", "https address"],
    ["com.example.app:/a b", "https address"],
    ["com.example.app:/é", "https address"],
    ["HTTPS://app.example.com/", "https address"],
    ["https:/app.example.com/", "https address"],
    ["https:app.example.com/", "https address"],
    ["https://", "https address"],
    ["https://app.example.com/\r\n", "https address"],
    ["https://app.example.com/ ", "https address"],
    [" https://app.example.com/", "https address"],
    ["https://app.example.com/\u0000", "https address"],
    ["https://bücher.example/", "https address"],
    ["http://app.example.com/", "must use https"],
    ["http://localhost.evil.example/", "must use https"],
    ["http://127.0.0.1.evil.example/", "must use https"],
    ["http://0.0.0.0/", "must use https"],
    ["https://a@app.example.com/", "fragment"],
    ["https://:b@app.example.com/", "fragment"],
    ["https://app.example.com/#x", "fragment"],
    ["https://app.example.com/#", "fragment"],
    ["https://APP.example.com/", "written as https://app.example.com/"],
    ["https://app.example.com", "written as https://app.example.com/"],
    ["https://app.example.com:443/", "written as https://app.example.com/"],
    ["https://app.example.com/a/../b", "written as https://app.example.com/b"],
    ["https://app.example.com\\b", "written as https://app.example.com/b"],
    ["https://app.example.com/%2e%2e/b", "written as https://app.example.com/b"],
    ["http://127.1/", "written as http://127.0.0.1/"],
    ["https://@app.example.com/", "written as https://app.example.com/"],
    [`https://app.example.com/${"x".repeat(2048)}`, "at most 2048"],
  ])("refuses %j", (text, problem) => {
    expect(parseRedirectUri(text)).toEqual({ problem: expect.stringContaining(problem) });
  });
});

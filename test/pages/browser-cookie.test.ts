import { describe, expect, it } from "vitest";
import { createBrowserCookie } from "../../src/pages/page-request.js";

const VALUE = "A".repeat(43);

describe("createBrowserCookie()", () => {
  it.each<[string | undefined, string | undefined]>([
    [undefined, undefined],
    ["", undefined],
    [`__Host-relay-browser=${VALUE}`, VALUE],
    [`a=b; __Host-relay-browser=${VALUE};c`, VALUE],
    [`a=b;__Host-relay-browser=${VALUE}`, VALUE],
    [`__Host-relay-browser=${VALUE}; __Host-relay-browser=${VALUE}`, undefined],
    [`__Host-relay-browser=x; __Host-relay-browser=${VALUE}`, undefined],
    [`__host-relay-browser=${VALUE}`, undefined],
    [`relay-browser=${VALUE}`, undefined],
    [`x__Host-relay-browser=${VALUE}`, undefined],
    [`__Host-relay-browser=${VALUE}A`, undefined],
    [`__Host-relay-browser="${VALUE}"`, undefined],
    [`__Host-relay-browser=${"/".repeat(43)}`, undefined],
    ["__Host-relay-browser", undefined],
    ["__Host-relay-browser=", undefined],
  ])("reads %j over https as %j", (header, value) => {
    expect(createBrowserCookie(true).read(header)).toBe(value);
  });

  it("over https is one that neither a sibling domain nor plain http can set", () => {
    const cookie = createBrowserCookie(true).write(VALUE);
    expect(cookie).toBe(`__Host-relay-browser=${VALUE}; Path=/; HttpOnly; SameSite=Lax; Secure`);
  });
});

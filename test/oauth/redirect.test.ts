import { describe, expect, it } from "vitest";
import { redirectUriWith, requireRedirectUri } from "../../src/oauth/callback.js";

describe("redirectUriWith()", () => {
  const denied = { outcome: "error", error: "access_denied" } as const;
  it.each([
    ["https://a.example/", "https://a.example/?provider=p&outcome=error&error=access_denied"],
    ["https://a.example/?x=%20", "https://a.example/?x=%20&provider=p&outcome=error&error=access_denied"],
    ["com.example.app:/done", "com.example.app:/done?provider=p&outcome=error&error=access_denied"],
  ])("adds to %s", (uri, expected) => {
    expect(redirectUriWith(uri, "p", denied)).toBe(expected);
  });

  it("names no error after a success", () => {
    expect(redirectUriWith("https://a.example/", "p", { outcome: "success" })).toBe(
      "https://a.example/?provider=p&outcome=success",
    );
  });
});

describe("requireRedirectUri()", () => {
  it("compares as text", () => {
    const listed = ["https://a.example/"];
    expect(() => requireRedirectUri("https://a.example/", listed)).not.toThrow();
    expect(() => requireRedirectUri(undefined, [])).not.toThrow();
    for (const uri of ["https://a.example", "https://a.example/x", "https://A.example/", "", "https://a.example/,x"]) {
      expect(() => requireRedirectUri(uri, listed)).toThrow(/not on the application's list/);
    }
  });
});

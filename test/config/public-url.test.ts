import { describe, expect, it } from "vitest";
import { publicUrlFrom } from "../../src/config/config.js";
import { callbackUrl } from "../../src/oauth/callback.js";

describe("publicUrlFrom()", () => {
  const http = { publicUrl: undefined, tlsCertFile: undefined };
  const https = { ...http, tlsCertFile: "cert.pem" };
  it.each([
    [{ ...http, publicUrl: "https://relay.example" }, "0.0.0.0", "https://relay.example"],
    [http, "127.0.0.1", "http://127.0.0.1:8080"],
    [http, "::1", "http://[::1]:8080"],
    [http, "192.0.2.1", undefined],
    [http, "0.0.0.0", undefined],
    [http, "::", undefined],
    [https, "192.0.2.1", "https://192.0.2.1:8080"],
    [https, "0.0.0.0", undefined],
  ])("%# of a listener at %s", (config, host, expected) => {
    expect(publicUrlFrom(config, { host, port: 8080 })).toBe(expected);
  });

  it("is needed for the callback", () => {
    expect(callbackUrl("https://relay.example")).toBe("https://relay.example/oauth/callback");
    expect(() => callbackUrl(undefined)).toThrow(/RELAY_PUBLIC_URL/);
  });
});

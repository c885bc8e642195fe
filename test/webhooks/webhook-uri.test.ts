import { describe, expect, it } from "vitest";
import { parseWebhookUri } from "../../src/webhooks/webhook-store.js";

const strict = { allowLoopback: false };
const development = { allowLoopback: true };

describe("parseWebhookUri()", () => {
  it.each([
    ["ftp://app.example.com/hook"],
    ["app.example.com/hook"],
    ["https:app.example.com"],
    ["https:///app.example.com"],
    ["https:\\\\app.example.com\\hook"],
    ["https://app.example.com/a b"],
    ["https://app.example.com/\u00e9"],
    ["https://app.example.com/hook\n"],
    ["https://app.example.com/hook#part"],
    ["https://app.example.com/hook#"],
    ["https://me:secret@app.example.com/hook"],
    ["https://me@app.example.com/hook"],
    ["HTTPS://app.example.com/hook"],
    ["https://APP.example.com/hook"],
    ["https://app.example.com:443/hook"],
    ["https://app.example.com/a/../hook"],
    ["https://0x7f000001/hook"],
    ["http://app.example.com/hook"],
    ["http://203.0.114.1/hook"],
    ["https://10.0.0.1/hook"],
    ["https://192.168.1.1/hook"],
    ["https://169.254.169.254/latest"],
    ["https://[fd00::1]/hook"],
    ["https://0.0.0.0/hook"],
    [`https://app.example.com/${"a".repeat(2048)}`],
  ])("refuses %s", (text) => {
    expect(parseWebhookUri(text, strict)).toEqual({ problem: expect.any(String) });
    expect(parseWebhookUri(text, development)).toEqual({ problem: expect.any(String) });
  });

  it.each([
    ["https://app.example.com/hook?tenant=1"],
    ["https://app.example.com:8443/"],
    ["https://203.0.114.1/hook"],
    ["https://[2a00:1450::1]/hook"],
  ])("takes %s", (text) => {
    expect(parseWebhookUri(text, strict)).toEqual({ value: text });
  });

  it("completes a path that is empty", () => {
    expect(parseWebhookUri("https://app.example.com", strict)).toEqual({ value: "https://app.example.com/" });
  });

  it.each([
    ["http://127.0.0.1:9000/hook"],
    ["http://localhost:9000/hook"],
    ["http://[::1]:9000/hook"],
    ["https://127.0.0.1:9000/hook"],
  ])("takes %s for development only", (text) => {
    expect(parseWebhookUri(text, development)).toEqual({ value: text });
    expect(parseWebhookUri(text, strict)).toEqual({ problem: expect.stringContaining("RELAY_ALLOW_LOOPBACK") });
  });
});

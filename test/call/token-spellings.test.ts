import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";
import { createStreamCallers } from "../support/stream-callers.js";

const TOKEN = "CANARY_0123456789abcdefghijklmnopqrstuvwxyz";

let harness: Harness;
let provider: RawProvider;
let application: TestApplication;
let body = "";

beforeAll(async () => {
  provider = await startRawProvider((socket) => socket.write(answer(body, "Content-Type: application/json")));
  harness = await startHarness({ providers: [{ name: "raw", apiOrigins: [provider.origin] }] });
  application = await harness.createApplication();
  await harness.connect(application, "u", { providerName: "raw", accessToken: TOKEN });
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

function escaped(text: string): string {
  return text.replace(/./g, (one) => `\\u00${one.charCodeAt(0).toString(16)}`);
}

describe("a token that a provider echoes in escapes of JSON", () => {
  it.each([
    ["one letter, in a value", `{"t":"${escaped(TOKEN[0] as string)}${TOKEN.slice(1)}"}`, { t: "[redacted]" }],
    ["all letters, in a value", `{"t":"Bearer ${escaped(TOKEN)}"}`, { t: "Bearer [redacted]" }],
    ["all letters, in a member's name", `{"${escaped(TOKEN)}":1}`, { "[redacted]": 1 }],
    ["in base64 in lines", `{"t":"${base64Lines()}"}`, undefined],
  ])("is taken out on every surface: %s", async (_what, json, data) => {
    body = json;
    const call = { url: provider.origin, method: "GET" };
    const described = { providerName: "raw", userId: "u", publicKey: application.publicKey, call };
    for (const [protocol, perform] of createCallers(harness.url)) {
      const row = await perform(described);
      if (data !== undefined) expect(row["data"], protocol).toEqual(data);
      else expect(decoded(row["data"]), protocol).not.toContain(TOKEN);
      expect(JSON.stringify(row["data"]), protocol).toContain("[redacted]");
    }
    for (const [protocol, perform] of createStreamCallers(harness.url)) {
      const { body: streamed } = await perform(described);
      expect(streamed.toString(), protocol).toContain("[redacted]");
      expect(decoded(JSON.parse(streamed.toString())), protocol).not.toContain(TOKEN);
    }
  });
});

function base64Lines(): string {
  const encoded = Buffer.from(`${"x".repeat(50)}${TOKEN}${"y".repeat(40)}`).toString("base64");
  return (encoded.match(/.{1,76}/g) ?? []).join("\\r\\n");
}

function decoded(data: unknown): string {
  return Buffer.from(String((data as { t?: string }).t), "base64").toString("latin1") + JSON.stringify(data);
}

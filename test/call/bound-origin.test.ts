import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

const asked: string[] = [];
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  harness = await startHarness({
    providers: [{ name: "tenant", apiOrigins: ["https://{tenant}.example.com"] }],
    upstream: {
      resolve: async (hostname) => {
        asked.push(hostname);
        throw new Error("there is no name service in a test");
      },
    },
  });
  application = await harness.createApplication();
  await harness.connect(application, "u", { providerName: "tenant", originParameters: { tenant: "acme" } });
});

afterAll(() => harness.close());

async function errorTypeAt(url: string): Promise<unknown> {
  const call = { providerName: "tenant", userId: "u", publicKey: application.publicKey, call: { url, method: "GET" } };
  return JSON.parse((await postRest(harness.url, call)).text).rows[0].errorType;
}

describe("a templated origin", () => {
  it("is not even looked up when it is not the one that the user connected (U40)", async () => {
    expect(await errorTypeAt("https://other.example.com/")).toBe("URL_NOT_ALLOWED");
    expect(asked).toEqual([]);
  });

  it("is dialled when it is", async () => {
    expect(await errorTypeAt("https://acme.example.com/")).toBe("PROVIDER_UNREACHABLE");
    expect(asked).toEqual(["acme.example.com"]);
  });
});

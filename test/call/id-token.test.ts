import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness } from "../support/harness.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";

const ID_TOKEN = "CANARY_ID_eyJhbGciOiJub25lIn0";

let harness: Harness;
let provider: RawProvider;

beforeAll(async () => {
  provider = await startRawProvider((socket, { head }) =>
    socket.write(answer(head.split(" ")[1] ?? "", "Content-Type: text/plain", `X-Seen: ${head.split(" ")[1]}`)),
  );
  harness = await startHarness({
    providers: [{ name: "raw", apiOrigins: [provider.origin], urlPlaceholders: ["id_token"] }],
  });
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

describe("an id token in the url", () => {
  it("reaches the provider, and is redacted when the provider echoes it", async () => {
    const application = await harness.createApplication();
    await harness.connect(application, "u", { providerName: "raw", idToken: ID_TOKEN });
    const call = { url: `${provider.origin}/?t={{id_token}}`, method: "GET" };
    const { text } = await postRest(harness.url, {
      providerName: "raw",
      userId: "u",
      publicKey: application.publicKey,
      call,
    });
    expect(provider.requests[0]?.head).toContain(`GET /?t=${ID_TOKEN} HTTP/1.1`);
    expect(JSON.parse(text).rows[0]).toMatchObject({
      data: "/?t=[redacted]",
      headers: { "X-Seen": "/?t=[redacted]" },
    });
    expect(harness.logLines.join("")).not.toContain("CANARY_ID");
  });
});

import { afterAll, beforeAll, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { startTokenEndpoint, type TestTokenEndpoint } from "../support/token-endpoint.js";
import { openBrowser } from "./browser.js";
import { BACK, connectIn, pageAt, startAt, storedOf } from "./flow.js";

let endpoint: TestTokenEndpoint;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  endpoint = await startTokenEndpoint(() => harness.sandbox.origin);
  endpoint.play = () => {};
  harness = await startHarness({
    definitionsFor: (origin) => [
      {
        name: "hanging",
        apiOrigins: [origin],
        oauth2: {
          authorizationEndpoint: `${origin}/oauth/authorize`,
          tokenEndpoint: endpoint.url,
          revocationEndpoint: endpoint.url,
        },
      },
    ],
  });
  application = await harness.createApplication({ allowedRedirectUris: [BACK] });
  await harness.putClient(application, "hanging");
});

afterAll(async () => {
  await harness.close();
  await endpoint.close();
});

it("a provider that never answers keeps neither a browser nor a deletion for ever", async () => {
  await harness.connect(application, "deleted", { providerName: "hanging" });
  const query = { public_key: application.publicKey, user_id: "deleted" };
  const deleting = openBrowser().visit(pageAt(harness, "/oauth/connections/hanging", query), { method: "DELETE" });
  const start = startAt(harness, application, "waits", { provider: "hanging", redirect_uri: BACK });
  const connecting = connectIn(openBrowser(), start);
  expect((await connecting).location).toContain("error=temporarily_unavailable");
  expect(JSON.parse((await deleting).body)).toEqual({ revocation: "FAILED" });
  expect(endpoint.received).toHaveLength(2);
  expect(await storedOf(harness, application, "deleted", "hanging")).toBeUndefined();
});

import { expect, it } from "vitest";
import { postRest } from "../support/callers.js";
import { freePort } from "../support/free-port.js";
import { startHarness } from "../support/harness.js";

it("never calls the relay itself, though a definition lists it (N15)", async () => {
  const [port, adminPort] = [await freePort(), await freePort()];
  const origins = ["127.0.0.1", "localhost"].flatMap((host) =>
    [port, adminPort].map((each) => `http://${host}:${each}`),
  );
  const harness = await startHarness({
    env: { RELAY_LISTEN: `127.0.0.1:${port}`, RELAY_ADMIN_LISTEN: `127.0.0.1:${adminPort}` },
    providers: [{ name: "self", apiOrigins: origins }],
  });
  try {
    const application = await harness.createApplication();
    await harness.connect(application, "u", { providerName: "self" });
    for (const origin of origins) {
      const call = { url: `${origin}/healthz`, method: "GET" };
      const request = { providerName: "self", userId: "u", publicKey: application.publicKey, call };
      const [row] = JSON.parse((await postRest(harness.url, request)).text).rows;
      expect(row).toMatchObject({ errorType: "PROVIDER_UNREACHABLE", statusCode: 502 });
    }
  } finally {
    await harness.close();
  }
});

import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Connection } from "../../src/oauth/connection.js";
import { type ConnectionColumn, connectionBinding } from "../../src/oauth/store-answer.js";
import type { SandboxRequest } from "../../src/sandbox/router.js";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

let harness: Harness;
let application: TestApplication;
let userId: string;
/** What happens while the provider's answer is on its way. */
let meanwhile: () => Promise<unknown>;
/** What the provider has given in that answer. */
let given: { readonly access_token: string; readonly refresh_token: string };

beforeEach(async () => {
  meanwhile = async () => {};
  harness = await startHarness({
    sandbox: {
      async holdTokenAnswer(_received, { body }) {
        given = JSON.parse(String(body));
        await meanwhile();
      },
    },
    definitionsFor: (origin) => [
      { name: "plain", apiOrigins: [origin], oauth2: { tokenEndpoint: `${origin}/oauth/token` } },
    ],
  });
  application = await harness.createApplication();
});
afterEach(() => harness.close());

/** A user's call, whose token has ended. */
async function call(providerName = "sandbox") {
  userId = randomUUID();
  await harness.putClient(application, providerName);
  const { refresh_token: refreshToken } = harness.sandbox.issueToken();
  await harness.connect(application, userId, { providerName, refreshToken, expiresAt: 1 });
  const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
  const { text } = await postRest(harness.url, { providerName, userId, publicKey: application.publicKey, call });
  return JSON.parse(text).rows[0] as Record<string, unknown>;
}

const key = (providerName = "sandbox") => ({ applicationId: application.id, userId, providerName });
const isRevocation = ({ target }: SandboxRequest) => target === "/oauth/revoke";
const revocations = () =>
  harness.sandbox.requests.filter(isRevocation).map(({ body }) => new URLSearchParams(body.toString()));
const logged = () =>
  harness.logLines.filter((line) => line.includes('"msg":"revocation"')).map((line) => JSON.parse(line));

async function statusOfGivenToken(): Promise<number> {
  const headers = { authorization: `Bearer ${given.access_token}` };
  return (await fetch(`${harness.sandbox.origin}/me`, { headers })).status;
}

async function disconnect() {
  const query = new URLSearchParams({ user_id: userId, public_key: application.publicKey });
  const headers = { authorization: `Bearer ${application.privateKey}` };
  const url = `${harness.url}/oauth/connections/sandbox?${query}`;
  return (await fetch(url, { method: "DELETE", headers })).json();
}

describe("tokens that come when their connection is gone", () => {
  it("are stored nowhere, and revoked at the provider by their refresh token, which the log tells", async () => {
    meanwhile = () => harness.store.connections.delete(key(), Date.now());
    expect(await call()).toMatchObject({ errorType: "INVALID_OAUTHID" });
    await expect.poll(() => logged().length).toBe(1);
    expect(logged()[0]).toMatchObject({ applicationId: application.id, provider: "sandbox", outcome: "revoked" });
    const [form, ...others] = revocations();
    expect(others).toEqual([]);
    expect(form?.get("token")).toBe(given.refresh_token);
    expect(form?.get("token_type_hint")).toBe("refresh_token");
    expect(await statusOfGivenToken()).toBe(401);
    expect(await harness.store.connections.find(key())).toBeUndefined();
    expect(harness.logLines.join("")).not.toMatch(/sandbox_[ar]t_/);
  });

  it("are revoked also when their application is gone with its client", async () => {
    meanwhile = () => harness.store.applications.delete(application.publicKey);
    expect(await call()).toHaveProperty("errorType");
    await expect.poll(() => logged().length).toBe(1);
    expect(await statusOfGivenToken()).toBe(401);
  });

  it("are told to be unrevoked where the provider cannot do it", async () => {
    meanwhile = () => harness.store.connections.delete(key("plain"), Date.now());
    await call("plain");
    await expect.poll(() => logged().length).toBe(1);
    expect(logged()[0]).toMatchObject({ provider: "plain", outcome: "not_supported" });
    expect(revocations()).toEqual([]);
  });

  it.each([
    ["are revoked with the row's own", "previous_refresh_token"],
    ["that cannot be opened leave the row's own to be revoked", "refresh_token"],
  ] as const)("%s when the user disconnects a connection beside which they were kept", async (_, sealedFor) => {
    await call();
    const row = (await harness.store.connections.find(key())) as Connection;
    const late = harness.sandbox.issueToken().refresh_token;
    const binding = (column: ConnectionColumn) => connectionBinding(row, column);
    const tokens = {
      ...row,
      accessToken: harness.sealer.seal("late", binding("access_token")),
      refreshToken: harness.sealer.seal(late, binding("refresh_token")),
      lateRefreshToken: harness.sealer.seal(late, binding(sealedFor)),
    };
    const overtaken = { ...row, version: row.version - 1 };
    expect(await harness.store.connections.commitRefresh(overtaken, tokens, Date.now())).toBe("superseded");
    const disconnected = await disconnect();
    const isOpened = sealedFor === "previous_refresh_token";
    expect(disconnected).toEqual({ revocation: isOpened ? "REVOKED" : "FAILED" });
    const revoked = revocations().map((form) => form.get("token"));
    expect(revoked).toEqual(isOpened ? [late, given.refresh_token] : [given.refresh_token]);
  });

  it("are revoked when the user disconnects although the access token beside them cannot be opened", async () => {
    await call();
    const row = (await harness.store.connections.find(key())) as Connection;
    const accessToken = harness.sealer.seal("another", connectionBinding(row, "id_token"));
    await harness.store.connections.put({ ...row, accessToken }, Date.now());
    expect(await disconnect()).toEqual({ revocation: "REVOKED" });
    expect(revocations().map((form) => form.get("token"))).toEqual([given.refresh_token]);
  });

  it("are revoked before the relay ends", async () => {
    const asked = new Promise<void>((resolve) => {
      meanwhile = async () => {
        await harness.store.connections.delete(key(), Date.now());
        resolve();
      };
    });
    const called = call().catch(() => {});
    await asked;
    await harness.closeRelay();
    await called;
    expect(revocations()).toHaveLength(1);
  });

  it("are left alone when the user has connected again: providers end a user's grant with any of its tokens", async () => {
    meanwhile = () => harness.connect(application, userId);
    expect(await call()).toMatchObject({ pincStatus: "success" });
    await harness.closeRelay();
    expect(revocations()).toEqual([]);
    expect(logged()).toEqual([]);
  });
});

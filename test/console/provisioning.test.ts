import { generateKeyPairSync } from "node:crypto";
import type { Page } from "playwright-core";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import { ADMIN_TOKENS, type TestApplication } from "../support/harness.js";
import { type ConsoleWorld, go, MARKUP, showView, startConsoleWorld } from "./world.js";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsoleWorld();
});
afterAll(() => world?.close());

const command = (page: Page, name: string) => page.locator(`pre[aria-label="Command: ${name}"]`);
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

/** What the audit trail says last of an application. */
async function lastAudit({ publicKey }: TestApplication) {
  const [record] = await world.harness.store.audit.list({ beforeId: undefined, publicKey, limit: 1 });
  return [record?.actor, record?.method.replace("relay.admin.v1.", ""), record?.outcome];
}

/** Opens a view of a new application. @param query what stands behind its public key in the address. */
async function open(view: string, { query = "", token = ADMIN_TOKENS.operator as string } = {}) {
  const application = await world.harness.createApplication({ callerAuth: "PRIVATE_KEY" });
  const page = await world.openView("Applications", { token });
  await go(page, `#/${view}?publicKey=${application.publicKey}${query}`);
  return { page, application };
}

/** Something that waits until it is released. */
function hold() {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { released, release: () => release() };
}

describe("OAuth clients in the console", NEEDS_CHROMIUM, () => {
  it("are stored with what to register where, keep a secret that is not typed again, and are deleted", async () => {
    const { page, application } = await open("clients");
    const { oauthClients } = world.harness.store;
    await page.getByText(`${world.harness.url}/oauth/callback`).waitFor();
    await page.getByLabel("Provider", { exact: true }).fill("github");
    await page.getByRole("link", { name: "docs.github.com" }).first().waitFor();
    await page.getByLabel("Provider", { exact: true }).fill("sandbox");
    await press(page, "Store the client");
    await page.locator("#client-clientId:focus").waitFor();
    expect(await page.locator("#client-clientId-wrong").textContent()).toContain("oauth_client.client_id is missing.");
    await page.getByLabel("Customers that this client is for").fill("nonsense");
    await press(page, "Store the client");
    await page.getByText("Each line must be a name and a value").waitFor();
    await page.getByLabel("Customers that this client is for").fill("subdomain=one\nsubdomain=two");
    await press(page, "Store the client");
    await page.getByText("is given twice").waitFor();
    await page.getByLabel("Customers that this client is for").fill("");
    await page.getByLabel("Client id").fill("the-client");
    await page.getByLabel("Client secret").fill("CANARY_client_secret");
    expect(await page.getByLabel("Client secret").getAttribute("autocomplete")).toBe("new-password");
    expect(await page.getByLabel("Client id").getAttribute("autocomplete")).toBe("off");
    expect(await command(page, "Store the client").textContent()).toBe(
      `relay client put --app ${application.publicKey} --provider sandbox < client.json`,
    );
    await page.getByLabel("Client id").press("Enter");
    await page.getByText("Stored the client for sandbox.").waitFor();
    const stored = await oauthClients.find(application.id, "sandbox");
    expect(stored).toMatchObject({ clientId: "the-client", scope: "" });
    expect(await page.getByLabel("Client secret").inputValue()).toBe("");
    expect(await lastAudit(application)).toEqual(["alice", "OAuthClientService.UpdateOAuthClient", "DONE"]);

    await page.getByRole("link", { name: "Change or delete the client at sandbox" }).click();
    await page.getByText("Leave empty to keep the stored one.").waitFor();
    await page.getByLabel("Scope to ask users for").fill("read write");
    await press(page, "Store the client");
    await page.getByRole("cell", { name: "read write" }).waitFor();
    const changed = await oauthClients.find(application.id, "sandbox");
    expect(changed).toMatchObject({ clientId: "the-client", scope: "read write", clientSecret: stored?.clientSecret });
    await page.getByLabel("Remove the stored secret").check();
    await press(page, "Store the client");
    await page.getByRole("cell", { name: "none", exact: true }).waitFor();
    expect((await oauthClients.find(application.id, "sandbox"))?.clientSecret).toBeUndefined();

    await page.getByLabel("Tokens of its users can then no longer be refreshed").check();
    await press(page, "Delete the client");
    await page.getByText("Deleted the client.").waitFor();
    expect(await oauthClients.find(application.id, "sandbox")).toBeUndefined();
    expect(await lastAudit(application)).toEqual(["alice", "OAuthClientService.DeleteOAuthClient", "DONE"]);
    expect(world.harness.logLines.join("\n")).not.toContain("CANARY_client_secret");
  });

  it("keep a secret that the page does not know of, and have no form before they are known", async () => {
    const { page, application } = await open("webhook");
    await page.getByText("The application has no webhook").waitFor();
    const list = hold();
    await page.route(/ListOAuthClients/, async (route) => {
      await list.released;
      await route.continue();
    });
    await go(page, `#/clients?publicKey=${application.publicKey}`);
    await page.getByRole("heading", { level: 1, name: "OAuth clients" }).waitFor();
    expect(await page.getByRole("form").count()).toBe(0);
    list.release();
    await page.getByText("The application has no OAuth client yet").waitFor();
    await world.harness.putClient(application);
    const { oauthClients } = world.harness.store;
    const { clientSecret } = (await oauthClients.find(application.id, "sandbox")) ?? expect.unreachable();
    expect(clientSecret).toBeDefined();
    await page.getByLabel("Provider", { exact: true }).fill("sandbox");
    await page.getByLabel("Client id").fill("another");
    await press(page, "Store the client");
    await page.getByText("Stored the client for sandbox.").waitFor();
    expect(await oauthClients.find(application.id, "sandbox")).toMatchObject({ clientId: "another", clientSecret });
  });
});

describe("connections in the console", NEEDS_CHROMIUM, () => {
  it("are stored from a token response, shown, and deleted", async () => {
    const { page, application } = await open("connection");
    const { connections } = world.harness.store;
    const key = { applicationId: application.id, userId: "grace", providerName: "sandbox" };
    await page.getByLabel("User id").fill("grace");
    await page.getByLabel("Provider", { exact: true }).fill("sandbox");
    const response = page.getByLabel("Token response of the provider");
    await response.fill("{}");
    await response.press("Enter");
    await page.locator("#connection-tokenResponse:focus[aria-invalid=true]").waitFor();
    expect(await page.locator("#connection-tokenResponse-wrong").textContent()).toContain("token_response is invalid");
    await response.fill('{"access_token": "CANARY_typed_token", "scope": "read"}');
    expect(await command(page, "Store the connection").textContent()).toBe(
      `relay connection put --app ${application.publicKey} --user grace --provider sandbox < connection.json`,
    );
    await press(page, "Store the connection");
    await page.getByText("Calls for grace can be made now.").waitFor();
    expect(await connections.find(key)).toMatchObject({ scope: "read", state: "ACTIVE" });
    expect(await response.inputValue()).toBe("");
    expect(await page.content()).not.toContain("CANARY_typed_token");
    expect(await lastAudit(application)).toEqual(["alice", "ConnectionService.PutConnection", "DONE"]);
    await page.getByRole("region", { name: "State" }).getByText("Works").waitFor();

    await press(page, "Delete the connection");
    await page.getByText("Tick this box to continue.").waitFor();
    await page.getByLabel("Do not revoke the token at the provider").check();
    expect(await command(page, "Delete the connection").textContent()).toBe(
      `relay connection delete --app ${application.publicKey} --user grace --provider sandbox --no-revoke`,
    );
    await page.getByLabel("Calls for this user will fail").check();
    await press(page, "Delete the connection");
    await page.getByText("Deleted the connection. The token was not revoked at the provider.").waitFor();
    expect(await connections.find(key)).toBeUndefined();
    expect(await lastAudit(application)).toEqual(["alice", "ConnectionService.DeleteConnection", "DONE"]);
    expect(world.harness.logLines.join("\n")).not.toContain("CANARY_typed_token");
  });

  it("take keys by the names that the provider's definition has", async () => {
    const { page, application } = await open("connection", { query: "&userId=ada&providerName=sendgrid" });
    await page.getByText("There is no connection of this user").waitFor();
    const apiKey = page.getByLabel(/API key/i);
    await press(page, "Store the connection");
    await page.locator(".problem").getByText("secrets.api_key").waitFor();
    await apiKey.fill("CANARY_api_key");
    await press(page, "Store the connection");
    await page.getByText("Calls for ada can be made now.").waitFor();
    const key = { applicationId: application.id, userId: "ada", providerName: "sendgrid" };
    expect(await world.harness.store.connections.find(key)).toMatchObject({ tokenType: "api_key" });
    await showView(page, "Connections");
    expect(await page.content()).not.toContain("CANARY_api_key");
  });

  it("take a signing key as the file that the provider gave, in a field of one line", async () => {
    const { page, application } = await open("connection", {
      query: "&userId=ada&providerName=googleserviceaccount",
    });
    const pem = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" });
    const file = { type: "service_account", private_key_id: "k1", private_key: pem, client_email: "a@b.example" };
    await page.getByLabel("Key file").fill('{"private_key": "CANARY_no_key"}');
    await press(page, "Store the connection");
    await page.locator(".problem").getByText("must be a private key in PEM").waitFor();
    await page.getByLabel("Key file").fill(JSON.stringify(file, undefined, 2));
    await press(page, "Store the connection");
    await page.getByText("Stored, sealed.").waitFor();
    const key = { applicationId: application.id, userId: "ada", providerName: "googleserviceaccount" };
    expect(await world.harness.store.connections.find(key)).toMatchObject({
      tokenType: "jwt_bearer",
      originParameters: { client_email: "a@b.example", private_key_id: "k1" },
    });
    await page.getByText("private_key_id=k1").waitFor();
    expect(await page.content()).not.toContain(String(pem).slice(40, 60));
    expect(await page.content()).not.toContain("CANARY");
  });

  it.each([
    {
      kind: "basic",
      provider: "razorpay",
      fields: { "Key ID": "rzp_key_of_ada", "Key secret": "CANARY_password" },
      values: { username: "rzp_key_of_ada" },
      refresh: "Not needed",
    },
    {
      kind: "oauth1",
      provider: "bricklink",
      fields: {
        ...{ "Consumer key": "own-consumer", "Consumer secret": "CANARY_consumer_secret" },
        ...{ "Token value": "CANARY_token", "Token secret": "CANARY_token_secret" },
      },
      values: { client_id: "own-consumer" },
      refresh: "Not needed",
    },
    {
      kind: "client_credentials",
      provider: "twitchapp",
      fields: { "Client ID": "own-client", "Client secret": "CANARY_client_secret" },
      values: { client_id: "own-client" },
      refresh: "Automatic",
    },
  ])(
    "take what the kind $kind asks for, show what is no secret and whether it is refreshed, and end",
    async ({ kind, provider, fields, values, refresh }) => {
      const { page, application } = await open("connection", { query: `&userId=ada&providerName=${provider}` });
      await page.getByText("There is no connection of this user").waitFor();
      for (const [label, text] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(text);
      expect(await page.getByLabel("Token response of the provider").count()).toBe(0);
      await press(page, "Store the connection");
      await page.getByText("Calls for ada can be made now.").waitFor();
      const key = { applicationId: application.id, userId: "ada", providerName: provider };
      const { connections } = world.harness.store;
      expect(await connections.find(key)).toMatchObject({ tokenType: kind, originParameters: values });
      await page
        .getByRole("definition")
        .getByText(Object.values(values)[0] as string)
        .waitFor();
      const steps = page.getByRole("region", { name: "State" }).getByRole("definition");
      expect((await steps.allTextContents()).includes("Not needed")).toBe(refresh === "Not needed");
      await showView(page, "Connections");
      const row = page.getByRole("table", { name: "Connections" }).getByRole("row").filter({ hasText: provider });
      await row.getByRole("cell", { name: refresh, exact: true }).waitFor();
      expect(await page.content()).not.toContain("CANARY");
      await go(page, `#/connection?publicKey=${application.publicKey}&userId=ada&providerName=${provider}`);
      await page.getByLabel("Calls for this user will fail").check();
      await press(page, "Delete the connection");
      await page.getByText("Deleted the connection.").waitFor();
      expect(await connections.find(key)).toBeUndefined();
      expect(world.harness.logLines.join("\n")).not.toContain("CANARY_client_secret");
    },
  );

  it("of which one is stored late do not take the place of the one that is shown by then", async () => {
    const { page, application } = await open("connection", { query: "&userId=ada&providerName=sendgrid" });
    await world.harness.connect(application, "bob");
    await page.getByLabel(/API key/i).fill("CANARY_api_key");
    const answer = hold();
    await page.route(/PutConnection/, async (route) => {
      const response = await route.fetch();
      await answer.released;
      await route.fulfill({ response });
    });
    await press(page, "Store the connection");
    await page.getByText("Working…").waitFor();
    await go(page, `#/connection?publicKey=${application.publicKey}&userId=bob&providerName=sandbox`);
    await page.getByRole("definition").getByText("bob").waitFor();
    const answered = page.waitForResponse(/PutConnection/);
    answer.release();
    await (await answered).finished();
    await page.getByLabel("Do not revoke the token at the provider").check();
    expect(await command(page, "Delete the connection").textContent()).toContain("--user bob --provider sandbox");
    expect(await page.getByLabel("User id").inputValue()).toBe("bob");
  });

  it("are opened from the list, markup and all", async () => {
    const page = await world.openView("Connections");
    await page.getByRole("link", { name: /^Open the connection of .*onerror=/ }).click();
    await page.getByRole("definition").getByText("onerror=").first().waitFor();
    expect(await page.evaluate("globalThis.ran")).toBeUndefined();
    expect(await page.getByLabel("User id").inputValue()).toBe(MARKUP);
    expect(page.complaints).toEqual([]);
  });
});

describe("connect links in the console", NEEDS_CHROMIUM, () => {
  it("are made for a user, shown once, and open the way to the provider once", async () => {
    const { page, application } = await open("link");
    await press(page, "Make the connect link");
    await page.locator("#link-userId:focus").waitFor();
    expect(await page.locator("#link-userId-wrong").textContent()).toContain("user_id is missing.");
    await page.getByLabel("User id").fill("ada");
    await page.getByLabel("Providers").fill("nowhere");
    await press(page, "Make the connect link");
    await page.locator("#link-providerNames:focus").waitFor();
    await page.getByLabel("Providers").fill("sandbox");
    await press(page, "Make the connect link");
    await page.locator("#link-problem:focus").waitFor();
    await world.harness.putClient(application);
    await page.getByLabel("Address to return to").fill("https://elsewhere.example/");
    await press(page, "Make the connect link");
    await page.locator("#link-redirectUri:focus").waitFor();
    await page.getByLabel("Address to return to").fill("");
    expect(await lastAudit(application)).toEqual([undefined, undefined, undefined]);
    await press(page, "Make the connect link");
    const link = (await page.getByRole("region", { name: "Connect link", exact: true }).textContent()) ?? "";
    expect(link).toContain(`${world.harness.url}/oauth/connect/sandbox?link=`);
    expect(await lastAudit(application)).toEqual(["alice", "ConnectionService.CreateConnectLink", "DONE"]);
    await showView(page, "Audit trail");
    expect(await page.content()).not.toContain(link.split("=")[1]);
    expect((await request(link)).statusCode).toBe(200);
    expect((await request(link)).statusCode).toBe(403);
  });
});

describe("webhooks in the console", NEEDS_CHROMIUM, () => {
  it("are set with a secret that is shown once, and deleted", async () => {
    const { page, application } = await open("webhook");
    await page.getByText("The application has no webhook").waitFor();
    expect(await page.getByRole("button", { name: "Delete the webhook" }).count()).toBe(0);
    const uri = page.getByLabel("Address that events are sent to");
    await uri.fill("nowhere");
    await uri.press("Enter");
    await page.locator("#webhook-uri:focus[aria-invalid=true]").waitFor();
    expect(await page.locator("#webhook-uri-wrong").textContent()).toContain("webhook.uri must");
    await uri.fill(`${world.harness.sandbox.origin}/hook`);
    await uri.press("Enter");
    await page.locator("#webhook-result:focus").waitFor();
    const secret = (await page.getByRole("region", { name: "Signing secret", exact: true }).textContent()) ?? "";
    expect(secret).toMatch(/^whsec_/);
    await page.getByText("Nothing to deliver").waitFor();
    expect(await lastAudit(application)).toEqual(["alice", "WebhookService.PutWebhook", "DONE"]);
    await page.getByRole("link", { name: "Call tokens" }).click();
    await page.getByRole("heading", { level: 1, name: "Call tokens" }).waitFor();
    expect(await page.content()).not.toContain(secret);
    await page.goBack();
    await page.getByText("Nothing to deliver").waitFor();
    expect(await page.content()).not.toContain(secret);
    expect(await command(page, "Delete the webhook").textContent()).toBe(
      `relay webhook delete --app ${application.publicKey}`,
    );
    await page.getByLabel("Undelivered events will be deleted").check();
    await press(page, "Delete the webhook");
    await page.getByText("The application has no webhook").waitFor();
    expect(await world.harness.store.webhooks.findEndpoint(application.id)).toBeUndefined();
    expect(await lastAudit(application)).toEqual(["alice", "WebhookService.DeleteWebhook", "DONE"]);
    await page.getByText("Deleted the webhook.").waitFor();
    expect(await page.getByRole("button", { name: "Delete the webhook" }).count()).toBe(0);
    await uri.fill(`${world.harness.sandbox.origin}/hook`);
    await press(page, "Set the webhook");
    await page.getByRole("button", { name: "Delete the webhook" }).waitFor();
  });
});

describe("call tokens in the console", NEEDS_CHROMIUM, () => {
  it("are made with rules that hold, shown once and gone after leaving", async () => {
    const { page, application } = await open("token");
    await world.harness.connect(application, "ada");
    await page.getByLabel("User id").fill("ada");
    await page.getByLabel("Lifetime in seconds").fill("90000");
    await press(page, "Make the call token");
    await page.locator("#token-lifetimeSeconds:focus").waitFor();
    expect(await page.locator("#token-lifetimeSeconds-wrong").textContent()).toContain(
      "lifetime_seconds must be from 1",
    );
    await page.getByLabel("Lifetime in seconds").fill("60");
    await page.getByLabel("HTTP methods").fill("get");
    await page.getByLabel("Paths").fill("/me");
    expect(await command(page, "Make the call token").textContent()).toBe(
      `relay token create --app ${application.publicKey} --user ada --ttl 60s --method GET --path /me`,
    );
    await press(page, "Make the call token");
    const token = (await page.getByRole("region", { name: "Call token", exact: true }).textContent()) ?? "";
    expect(await lastAudit(application)).toEqual(["alice", "ApplicationService.CreateCallToken", "DONE"]);
    for (const [path, status] of [
      ["/me", 200],
      ["/items?count=1", 403],
    ] as const) {
      const { body } = await request(`${world.harness.url}/oauth/method/sandbox/call`, {
        ...{ method: "POST", headers: { authorization: `Bearer ${token}`, "content-type": "application/json" } },
        body: JSON.stringify({ url: `${world.harness.sandbox.origin}${path}`, method: "GET" }),
      });
      const { rows } = (await body.json()) as { rows: Array<{ statusCode: number }> };
      expect([path, rows[0]?.statusCode]).toEqual([path, status]);
    }
    await showView(page, "Audit trail");
    expect(await page.content()).not.toContain(token);
    expect(world.harness.logLines.join("\n")).not.toContain(token);
  });

  it("come with a warning where the public key alone is enough", async () => {
    const page = await world.openView("Applications");
    await go(page, `#/token?publicKey=${world.application.publicKey}`);
    await page.getByText("anyone who sees a call token can also call without it").waitFor();
  });
});

describe("the audit trail in the console", NEEDS_CHROMIUM, () => {
  it("shows who did what, also what was refused, of one application and before a time", async () => {
    const { page, application } = await open("webhook", { token: ADMIN_TOKENS.readOnly });
    await page.getByText("The application has no webhook").waitFor();
    await page.evaluate("document.querySelectorAll('fieldset').forEach((each) => { each.disabled = false; })");
    await page.getByLabel("Address that events are sent to").fill("https://app.example.com/");
    await press(page, "Set the webhook");
    await page.getByText("This admin token is read-only; PutWebhook is for operators.").waitFor();
    expect(await lastAudit(application)).toEqual(["bob", "WebhookService.PutWebhook", "REFUSED"]);
    await page.getByRole("navigation", { name: "The application's views" }).getByText("Its audit trail").click();
    const row = page.getByRole("table", { name: "Audit trail" }).locator("tbody tr");
    await row.filter({ hasText: /bob.*WebhookService\.PutWebhook.*Refused/s }).waitFor();
    expect(await row.count()).toBe(1);
    await page.getByLabel("Before").fill("2020-01-01T00:00:00");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByText("There is no record of that.").waitFor();
  });
});

describe("a read-only token in the console", NEEDS_CHROMIUM, () => {
  it.each(["clients", "link", "connection", "webhook", "token"])(
    "has every control of '%s' greyed, with the reason",
    async (view) => {
      const { page } = await open(view, { token: ADMIN_TOKENS.readOnly });
      await page.getByText("This token is read-only: only operators can make changes.").first().waitFor();
      // Explaining changes nothing.
      const controls = page.locator("main form.call:not(#preview)").locator("input, select, textarea, button");
      expect(await controls.count()).toBeGreaterThan(1);
      expect(await controls.and(page.locator(":enabled")).count()).toBe(0);
      await page.locator("details.command summary").first().click();
      await page
        .getByRole("button", { name: /^Copy the command/ })
        .first()
        .waitFor();
    },
  );
});

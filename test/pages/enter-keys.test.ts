import { createHmac, generateKeyPairSync } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type RecordingProvider, startRecordingProvider } from "../support/recording-provider.js";
import { type Browser, openBrowser, type Seen } from "./browser.js";
import { BACK, linkTo, startAt, storedOf } from "./flow.js";

const KEY = "CANARY_key_of_ada";
const MARKUP = `"><script>alert(1)</script>`;
let harness: Harness;
let provider: RecordingProvider;
let application: TestApplication;

beforeAll(async () => {
  provider = await startRecordingProvider();
  const { origin } = provider;
  harness = await startHarness({
    providers: [
      {
        ...{
          name: "mailer",
          displayName: "Mailer",
          kind: "api_key",
          apiOrigins: [origin, "https://{team}.mailer.example"],
        },
        connectionValues: [
          { name: "team", label: "Team", help: "What stands in front of .mailer.example." },
          {
            name: "region",
            label: "Region",
            choices: [{ value: "us", label: "America" }, { value: "eu" }],
            defaultValue: "eu",
          },
          { name: "api_key", label: "API key", help: 'Settings > "API"', pattern: "[\\w\\-]{5,40}", secret: true },
        ],
      },
      { name: "desk", displayName: "Desk", kind: "basic", apiOrigins: [origin] },
    ],
  });
  application = await harness.createApplication({
    allowedRedirectUris: [BACK],
    allowedOrigins: ["https://app.example.com"],
  });
});
afterAll(async () => {
  await harness.close();
  await provider.close();
});

const sessionIn = ({ body }: Seen) => /name="session" value="([\w-]+)"/.exec(body)?.[1] ?? "";
const at = (name: string) => `${harness.url}/oauth/connect/${name}`;
async function asked(name: string, more: object = {}, userId = "ada", query = ""): Promise<[Browser, Seen]> {
  const browser = openBrowser();
  const link = await linkTo(harness, application, userId, { provider_name: name, ...more });
  return [browser, await browser.visit(link + query)];
}

describe("the page for entering keys", () => {
  it("asks for each value with its label and help, the key in a field that hides it", async () => {
    const [, seen] = await asked("mailer");
    expect(seen.status).toBe(200);
    expect(seen.body).toContain('<form method="post" action="/oauth/connect/mailer">');
    expect(seen.body).toContain('<label for="api_key">API key</label>');
    expect(seen.body).toContain("Settings &gt; &quot;API&quot;");
    expect(seen.body).toMatch(
      /<input id="api_key" name="api_key" required[^>]* type="password"[^>]* pattern="\[\\w\\-\]\{5,40\}"/,
    );
    expect(seen.body).toMatch(/<option value="us">America<\/option>\s*<option value="eu" selected>eu<\/option>/);
    expect(seen.headers["cache-control"]).toBe("no-store");
  });

  it("stores what is entered, sealed, and sends the browser back to the application", async () => {
    const [browser, seen] = await asked("mailer", { redirect_uri: BACK });
    const form = {
      session: sessionIn(seen),
      team: "https://Acme.mailer.example/inbox",
      region: "us",
      api_key: ` ${KEY} `,
    };
    const done = await browser.post(at("mailer"), form);
    expect([done.status, done.location]).toEqual([200, ""]);
    expect(done.body).toContain(`0; url=${BACK}?provider=mailer&amp;outcome=success`);
    const stored = await storedOf(harness, application, "ada", "mailer");
    expect(stored?.originParameters).toEqual({ team: "acme", region: "us" });
    expect(Buffer.from(stored?.accessToken ?? []).toString("latin1")).not.toContain("CANARY");
    const [, call] = createCallers(harness.url)[0] ?? [];
    const key = { providerName: "mailer", userId: "ada", publicKey: application.publicKey };
    await call?.({ ...key, call: { url: `${provider.origin}/send`, method: "POST", payload: {} } });
    expect(provider.requests.at(-1)?.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  it("takes a key file as long as any that the relay stores", async () => {
    const [browser, seen] = await asked("googleserviceaccount");
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const pem = privateKey.export({ type: "pkcs8", format: "pem" });
    const file = { type: "service_account", private_key_id: "k1", private_key: pem, client_email: "a@b.example" };
    // Percent-encoded, a tab is three bytes.
    const text = JSON.stringify(file, undefined, 2).padEnd(16_384, "\t");
    const form = { session: sessionIn(seen), signing_key: text };
    expect((await browser.post(at("googleserviceaccount"), form)).body).toContain("is connected");
    expect((await browser.post(at("googleserviceaccount"), { ...form, signing_key: text.padEnd(16_385) })).status).toBe(
      400,
    );
  });

  it("takes a password as long as any that the relay stores, of letters that take nine bytes each", async () => {
    const [browser, seen] = await asked("desk", {}, "long");
    const form = { session: sessionIn(seen), username: "ada", password: "\u8a9e".repeat(16_384) };
    expect(seen.body).not.toMatch(/type="password"[^>]* maxlength/);
    expect((await browser.post(at("desk"), form)).body).toContain("Desk is connected");
    expect((await browser.post(at("desk"), { ...form, password: `${form.password}x` })).status).toBe(400);
  });

  it("tells the page that opened it", async () => {
    const [browser, seen] = await asked("desk", {}, "opened", "&opener_origin=https://app.example.com");
    const done = await browser.post(at("desk"), { session: sessionIn(seen), username: "a", password: KEY });
    expect(done.body).toContain('data-origin="https://app.example.com"');
    expect(done.body).not.toContain(KEY);
  });

  it("says so where there is nowhere to go back to", async () => {
    const [browser, seen] = await asked("desk", {}, "bob");
    const done = await browser.post(at("desk"), { session: sessionIn(seen), username: "bob", password: "pässword x" });
    expect([done.status, done.body.includes("Desk is connected")]).toEqual([200, true]);
    expect(await storedOf(harness, application, "bob", "desk")).toMatchObject({ tokenType: "basic" });
  });

  it.each([
    ["mailer", { team: "acme", api_key: "CANARY short!" }, "API key is not valid", "must match"],
    ["mailer", { team: "acme", api_key: "" }, "API key is not valid", "is missing"],
    ["mailer", { team: "acme", api_key: "CANARY\r\nx: y" }, "API key is not valid", "line breaks"],
    ["mailer", { team: "evil.example/", api_key: KEY }, "No such address", "This is not an address of Mailer"],
    ["mailer", { team: MARKUP, api_key: KEY }, "No such address", "This is not an address of Mailer"],
    ["mailer", { team: "acme", region: MARKUP, api_key: KEY }, "Region is not valid", "must be one of us, eu"],
    ["desk", { username: "a\u0000b", password: KEY }, "User name is not valid", "control characters"],
  ])("asks %s again for %o, and has no secret in it", async (name, fields, title, text) => {
    const [browser, seen] = await asked(name, {}, "eve");
    const again = await browser.post(at(name), { session: sessionIn(seen), ...fields });
    expect(again.status).toBe(400);
    expect(again.body).toContain(`<title>${title}. Connect`);
    expect(again.body).toContain(text);
    expect(again.body).not.toContain("CANARY");
    expect(again.body).not.toContain("<script");
    expect(await storedOf(harness, application, "eve", name)).toBeUndefined();
  });

  it("takes a key from the form's own browser and session alone", async () => {
    const [browser, seen] = await asked("mailer", {}, "mallory");
    const form = { team: "acme", api_key: KEY, session: sessionIn(seen) };
    expect((await openBrowser().post(at("mailer"), form)).status).toBe(403);
    expect((await browser.post(at("mailer"), { ...form, session: "" })).status).toBe(403);
    expect((await browser.post(at("desk"), { ...form, username: "a", password: KEY })).status).toBe(403);
    expect((await browser.post(at("sandbox"), form)).status).toBe(403);
    expect((await browser.post(at("mailer"), { ...form, api_key: "k".repeat(512 * 1024) })).status).toBe(413);
    const inAddress = await browser.visit(`${at("mailer")}?${new URLSearchParams({ ...form, answer: "1" })}`);
    expect([inAddress.status, inAddress.body.includes(KEY)]).toEqual([200, false]);
    expect(await storedOf(harness, application, "mallory", "mailer")).toBeUndefined();
  });

  it("is reached by links of the application alone, whatever else a browser shows", async () => {
    const signed = await harness.createApplication({ callerAuth: "SIGNED_USER" });
    const signature = createHmac("sha256", signed.privateKey).update("eve").digest("hex");
    const addresses = [
      startAt(harness, application, "eve", { provider: "desk" }),
      startAt(harness, signed, "eve", { provider: "desk", user_signature: signature }),
    ];
    for (const address of addresses) {
      const seen = await openBrowser().visit(address);
      expect([seen.status, seen.body.includes("only be entered through a link"), seen.body.includes("<form")]).toEqual([
        403,
        true,
        false,
      ]);
    }
    const browser = openBrowser();
    const query = new URLSearchParams({ public_key: application.publicKey, user_id: "eve", providers: "desk,sandbox" });
    await harness.putClient(application);
    const page = await browser.visit(`${harness.url}/oauth/connect?${query}`);
    const [, session = ""] = /\/oauth\/connect\/sandbox\?session=([\w-]+)/.exec(page.body) ?? [];
    const form = { session, username: "eve", password: KEY };
    expect((await browser.visit(`${at("desk")}?session=${session}`)).status).toBe(403);
    expect((await browser.post(at("desk"), form)).status).toBe(403);
    expect(await storedOf(harness, application, "eve", "desk")).toBeUndefined();
  });

  it("keeps what the link has fixed, and asks for the rest", async () => {
    const fixed = { origin_parameters: { team: "Acme", region: "us" } };
    const [browser, seen] = await asked("mailer", fixed, "fixed", "&team=evil&region=eu");
    expect([seen.body.includes('name="team"'), seen.body.includes('name="api_key"')]).toEqual([false, true]);
    const form = { session: sessionIn(seen), team: "evil", region: "eu" };
    const wrong = await browser.post(at("mailer"), { ...form, api_key: "CANARY short!" });
    expect([wrong.status, wrong.body.includes('name="team"')]).toEqual([400, false]);
    await browser.post(at("mailer"), { ...form, api_key: KEY });
    const stored = await storedOf(harness, application, "fixed", "mailer");
    expect(stored?.originParameters).toEqual({ team: "acme", region: "us" });
  });
});

describe("the connect page", () => {
  it("offers keys of the providers that it was opened for, and those that are connected", async () => {
    const page = async (userId: string, more: object = {}) => {
      const browser = openBrowser();
      return browser.visit((await browser.visit(await linkTo(harness, application, userId, more))).location);
    };
    expect((await page("new")).body).not.toContain("Mailer");
    expect((await page("new", { providers: ["mailer", "desk"] })).body).toMatch(/Connect<span class="unseen"> Mailer/);
    expect((await page("ada")).body).toMatch(/Connect again<span class="unseen"> to Mailer/);
  });

  it("shows a key that is connected without a link, and offers to end it alone", async () => {
    const query = new URLSearchParams({ public_key: application.publicKey, user_id: "ada", providers: "mailer,desk" });
    const { body } = await openBrowser().visit(`${harness.url}/oauth/connect?${query}`);
    expect(body).toMatch(/Disconnect<span class="unseen"> Mailer/);
    expect(body).not.toContain("/oauth/connect/mailer");
    expect(body).not.toContain("Desk");
  });

  it("is come back to, and says what has happened", async () => {
    const browser = openBrowser();
    const opened = await browser.visit(await linkTo(harness, application, "pat", { providers: ["desk", "mailer"] }));
    const page = await browser.visit(opened.location);
    const [, session = ""] = /\/oauth\/connect\/desk\?session=([\w-]+)/.exec(page.body) ?? [];
    const seen = await browser.visit(`${at("desk")}?session=${session}`);
    const done = await browser.post(at("desk"), { session: sessionIn(seen), username: "pat", password: KEY });
    expect(done.status).toBe(303);
    expect((await browser.visit(done.location)).body).toContain("Desk is connected");
  });
});

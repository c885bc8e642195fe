import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { openBrowser, overHttp1, overHttp2 } from "./browser.js";
import { BACK, begin, connectIn, consent, pageAt, startAt, storedOf, withQuery } from "./flow.js";

let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication({ name: "Notes & more", allowedRedirectUris: [BACK, `${BACK}?tab=2`] });
  await harness.putClient(application, "sandbox", { scope: "profile items" });
});

afterAll(() => harness.close());

async function callMe(userId: string): Promise<unknown> {
  const url = pageAt(harness, "/oauth/method/sandbox/call", { user_id: userId, public_key: application.publicKey });
  const body = JSON.stringify({ url: `${harness.sandbox.origin}/me`, method: "GET" });
  return (await request(url, { method: "POST", body })).body.json();
}

describe.each([
  ["HTTP/1.1", overHttp1],
  ["HTTP/2", overHttp2],
])("the authorization code flow over %s", (protocol, send) => {
  it("connects an account, brings the browser back and makes calls work", async () => {
    const user = `back ${protocol}`;
    const seen = await connectIn(openBrowser(send), startAt(harness, application, user, { redirect_uri: BACK }));
    expect([seen.status, seen.headers["location"]]).toEqual([303, `${BACK}?provider=sandbox&outcome=success`]);
    expect(await callMe(user)).toMatchObject({ rows: [{ pincStatus: "success", statusCode: 200 }] });
    expect(await storedOf(harness, application, user)).toMatchObject({ state: "ACTIVE", scope: "profile items" });
  });

  it("says on a page of its own how it went where the application names no address", async () => {
    const seen = await connectIn(openBrowser(send), startAt(harness, application, `page ${protocol}`));
    expect(seen.status).toBe(200);
    expect(seen.body).toContain("<title>Sandbox is connected</title>");
  });

  it("tells the application the provider's error code, and nothing else of it", async () => {
    const browser = openBrowser(send);
    const callback = await consent(browser, startAt(harness, application, "denied", { redirect_uri: `${BACK}?tab=2` }));
    const denial = { code: undefined, error: "access_denied", error_description: "<b>no</b>", error_uri: "https://e" };
    const seen = await browser.visit(withQuery(callback, denial));
    expect(seen.headers["location"]).toBe(`${BACK}?tab=2&provider=sandbox&outcome=error&error=access_denied`);
    expect(await storedOf(harness, application, "denied")).toBeUndefined();
  });

  it.each(["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"])("answers 405 to %s, and uses nothing up", async (method) => {
    const browser = openBrowser(send);
    const callback = await consent(browser, startAt(harness, application, `${method} ${protocol}`));
    for (const url of [callback, startAt(harness, application, "ada"), pageAt(harness, "/oauth/connect", {})]) {
      const seen = await browser.visit(url, { method });
      expect([seen.status, seen.headers["allow"]]).toEqual([405, "GET, POST"]);
    }
    expect((await browser.visit(callback)).status).toBe(200);
  });
});

describe("the authorization request", () => {
  it("asks for what RFC 6749 and RFC 7636 want, with the client's scope or the visit's", async () => {
    const begun = await begin(openBrowser(), startAt(harness, application, "ada"));
    const { origin, pathname, searchParams } = new URL(begun.location);
    expect(origin + pathname).toBe(`${harness.sandbox.origin}/oauth/authorize`);
    expect(Object.fromEntries(searchParams)).toEqual({
      response_type: "code",
      client_id: "sandbox-client",
      redirect_uri: `${harness.url}/oauth/callback`,
      scope: "profile items",
      state: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: "S256",
    });
    const other = await begin(openBrowser(), startAt(harness, application, "ada", { scope: 'a"b&state=x' }));
    expect(new URL(other.location).searchParams.getAll("scope")).toEqual(['a"b&state=x']);
    expect(new URL(other.location).searchParams.getAll("state")).toHaveLength(1);
  });

  it("is another one each time", async () => {
    const browser = openBrowser();
    const seen = [await begin(browser, startAt(harness, application, "ada"))];
    seen.push(await begin(browser, startAt(harness, application, "ada")));
    for (const name of ["state", "code_challenge"]) {
      expect(new Set(seen.map(({ location }) => new URL(location).searchParams.get(name))).size).toBe(2);
    }
  });
});

describe("answers to browsers", () => {
  it("are kept by nobody, name nobody and run nothing", async () => {
    const browser = openBrowser();
    const page = await browser.visit(
      pageAt(harness, "/oauth/connect", { public_key: application.publicKey, user_id: "a" }),
    );
    const failed = await browser.visit(pageAt(harness, "/oauth/callback", {}));
    const redirect = await begin(browser, startAt(harness, application, "ada"));
    for (const { headers } of [page, failed, redirect]) {
      expect(headers).toMatchObject({
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
      });
    }
    for (const { headers } of [page, failed]) {
      expect(headers["content-security-policy"]).toMatch(
        /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
      );
      expect(headers["x-frame-options"]).toBe("DENY");
    }
  });

  it("set one cookie, that scripts cannot read, and only where the browser has none that counts", async () => {
    const browser = openBrowser();
    const url = startAt(harness, application, "ada");
    const first = await browser.visit(url);
    expect(first.headers["set-cookie"]).toMatch(/^relay-browser=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
    expect((await browser.visit(url)).headers["set-cookie"]).toBeUndefined();
  });

  it("say at / what runs here, and nothing of what is stored", async () => {
    const { status, body, headers } = await openBrowser().visit(`${harness.url}/`);
    expect([status, headers["set-cookie"]]).toEqual([200, undefined]);
    expect(body).toContain("<h1>A provider call relay runs here</h1>");
    expect(body).not.toContain("Notes");
    expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; style-src 'sha256-/);
    const head = await openBrowser().visit(`${harness.url}/`, { method: "HEAD" });
    expect([head.status, head.body]).toEqual([200, ""]);
    const posted = await openBrowser().visit(`${harness.url}/`, { method: "POST" });
    expect([posted.status, posted.headers["allow"]]).toEqual([405, "GET, HEAD"]);
  });

  it.each(["/oauth/connect/", "/oauth/connect/a/b", "/oauth/callback/", "/oauth/callback/sandbox", "/oauth/"])(
    "are 404 at %s",
    async (path) => {
      expect((await openBrowser().visit(harness.url + path)).status).toBe(404);
    },
  );

  it.each([
    ["unknown", 404],
    ["%E0%A4%A", 404],
    ["..%2fsandbox", 404],
    ["__proto__", 404],
    ["Sandbox", 404],
    ["s%61ndbox", 303],
  ])("are for the provider %s as for calls", async (provider, status) => {
    const { publicKey } = application;
    const url = pageAt(harness, `/oauth/connect/${provider}`, { public_key: publicKey, user_id: "ada" });
    expect((await begin(openBrowser(), url)).status).toBe(status);
  });
});

it("answers a method that is a word of JavaScript (HTTP/2 lets any through)", async () => {
  for (const method of ["constructor", "toString", "__proto__", "valueOf"]) {
    for (const path of ["/oauth/callback", "/oauth/connect", "/oauth/connect/sandbox"]) {
      expect((await overHttp2(harness.url + path, { method })).status).toBe(405);
    }
  }
});

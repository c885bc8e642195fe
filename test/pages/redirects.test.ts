import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hashPrivateKey, signText } from "../../src/applications/application.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { openBrowser } from "./browser.js";
import { BACK, begin, connectIn, pageAt, startAt, storedOf } from "./flow.js";

let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication({ allowedRedirectUris: [BACK, "com.example.app:/done"] });
  await harness.putClient(application);
});

afterAll(() => harness.close());

describe("redirect_uri", () => {
  it.each([
    ["a longer path", `${BACK}/more`],
    ["a query", `${BACK}?x=1`],
    ["a fragment", `${BACK}#x`],
    ["a trailing dot", "https://app.example.com./connected"],
    ["another case of the path", BACK.toUpperCase().replace("HTTPS://APP.EXAMPLE.COM", "https://app.example.com")],
    ["another case of the host", "https://APP.example.com/connected"],
    ["the default port", "https://app.example.com:443/connected"],
    ["a name and password", "https://app.example.com@evil.example/connected"],
    ["a host that begins so", "https://app.example.com.evil.example/connected"],
    ["another scheme", "http://app.example.com/connected"],
    ["a path that leads away", `${BACK}/../../evil`],
    ["a percent sign", "https://app.example.com/%63onnected"],
    ["a space before it", ` ${BACK}`],
    ["a line break", `${BACK}\r\nset-cookie: a=b`],
    ["script", "javascript:alert(1)//https://app.example.com/connected"],
    ["data", "data:text/html,x"],
    ["no scheme", "//app.example.com/connected"],
    ["the app's scheme, longer", "com.example.app:/done2"],
  ])("with %s is not on the list", async (_, redirect_uri) => {
    for (const path of ["/oauth/connect/sandbox", "/oauth/connect"]) {
      const query = { public_key: application.publicKey, user_id: "ada", redirect_uri };
      const seen = await openBrowser().visit(pageAt(harness, path, query));
      expect([seen.status, seen.location]).toEqual([403, ""]);
      expect(seen.body).toContain("not on the application&#39;s list");
      expect(seen.body).not.toContain("evil");
    }
  });

  it("may be of an app's own scheme", async () => {
    const start = startAt(harness, application, "app", { redirect_uri: "com.example.app:/done" });
    const seen = await connectIn(openBrowser(), start);
    expect(seen.headers["location"]).toBe("com.example.app:/done?provider=sandbox&outcome=success");
  });
});

describe("who may begin", () => {
  const signatureOf = ({ privateKey }: TestApplication, userId: string) =>
    signText(hashPrivateKey(privateKey), userId).toString("hex");
  const visit = (own: TestApplication, user: string, query: Record<string, string> = {}) =>
    begin(openBrowser(), startAt(harness, own, user, query));

  it("is a user that the application signed, where it wants that", async () => {
    const own = await harness.createApplication({ callerAuth: "SIGNED_USER" });
    await harness.putClient(own);
    expect((await visit(own, "ada", { user_signature: signatureOf(own, "ada") })).status).toBe(303);
    for (const user_signature of ["", "x", signatureOf(own, "bob"), signatureOf(application, "ada")]) {
      expect((await visit(own, "ada", { user_signature })).status).toBe(403);
    }
    expect((await visit(own, "ada")).status).toBe(403);
  });

  it("is nobody without a link where the application wants its private key", async () => {
    const own = await harness.createApplication({ callerAuth: "PRIVATE_KEY" });
    await harness.putClient(own);
    const seen = await visit(own, "ada", { user_signature: signatureOf(own, "ada") });
    expect(seen.status).toBe(403);
    expect(seen.body).toContain("POST /oauth/connect-links");
  });

  it.each(["/oauth/connect", "/oauth/connect/sandbox"])("never shows a private key, at %s", async (path) => {
    for (const more of [{}, { session: "A".repeat(43) }, { link: "A".repeat(43) }]) {
      const query = { public_key: application.publicKey, user_id: "ada", private_key: application.privateKey, ...more };
      const seen = await openBrowser().visit(pageAt(harness, path, query));
      expect(seen.status).toBe(403);
      expect(seen.body).toContain("A private key must not be in a browser");
      expect(seen.body).not.toContain(application.privateKey);
    }
  });

  it("is at an address on the application's list", async () => {
    const own = await harness.createApplication({ allowedAddresses: ["192.0.2.0/24"] });
    await harness.putClient(own);
    expect((await visit(own, "ada")).status).toBe(403);
  });

  it.each([
    ["missing", {}, 400],
    ["unknown", { public_key: "unknown" }, 401],
    ["twice", { public_key: "a&public_key=a" }, 401],
  ])("names an application: %s", async (_, query, status) => {
    const url = pageAt(harness, "/oauth/connect/sandbox", { user_id: "ada", ...query });
    expect((await openBrowser().visit(url)).status).toBe(status);
  });

  it("is told when the operator has stored no client", async () => {
    const own = await harness.createApplication();
    const seen = await visit(own, "ada");
    expect(seen.status).toBe(500);
    expect(seen.body).toContain("relay client put");
  });
});

describe("user ids", () => {
  it.each([
    ["a NUL", "a\u0000b"],
    ["a line break", "a\r\nb"],
    ["é as one character", "\u00e9"],
    ["é as two", "e\u0301"],
    ["256 characters", "x".repeat(256)],
    ["128 characters of two units", "😀".repeat(128)],
    ["markup", "<b>&amp;'\"</b>"],
    ["a slash, and one that is encoded", "a/b%2Fc"],
  ])("with %s are themselves", async (_, user) => {
    await connectIn(openBrowser(), startAt(harness, application, user));
    expect(await storedOf(harness, application, user)).toMatchObject({ userId: user });
  });

  it.each([
    ["\u00e8", "e\u0300"],
    ["1", "1\u0000"],
    ["Ada", "ada"],
    ["ada", "ada "],
  ])("%j and %j are two users", async (one, other) => {
    await connectIn(openBrowser(), startAt(harness, application, one));
    expect(await storedOf(harness, application, other)).toBeUndefined();
    await connectIn(openBrowser(), startAt(harness, application, other));
    const ids = [await storedOf(harness, application, one), await storedOf(harness, application, other)];
    expect(new Set(ids.map((connection) => connection?.id)).size).toBe(2);
  });

  it.each([
    ["none", "", "user_id is missing"],
    ["257 characters", "x".repeat(257), "user_id is longer than 256"],
    ["4097 characters", "x".repeat(4097), "user_id is longer than 4096"],
    ["bytes that are no UTF-8", "%FF", "user_id is not correctly percent-encoded"],
    ["an overlong slash", "%C0%AF", "user_id is not correctly percent-encoded"],
    ["half a surrogate pair", "%ED%A0%80", "user_id is not correctly percent-encoded"],
    ["two", "a&user_id=b", "user_id is given more than once"],
  ])("with %s are refused", async (_, raw, text) => {
    const url = `${harness.url}/oauth/connect/sandbox?public_key=${application.publicKey}&user_id=${raw}`;
    const seen = await openBrowser().visit(url);
    expect(seen.status).toBe(400);
    expect(seen.body).toContain(text);
  });
});

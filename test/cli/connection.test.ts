import { generateKeyPairSync } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { prepareOnce } from "./run-relay.js";

const TOKENS = {
  access_token: "canary-access-token",
  refresh_token: "canary-refresh-token",
  id_token: "canary.id.token",
  expires_in: 3600,
  scope: "a b",
  token_type: "bearer",
};
const INPUT = JSON.stringify(TOKENS);
const SHOP = { name: "shop", aliases: ["old-shop"], apiOrigins: ["https://{subdomain}.shop.example"] };

const folderWithApp = prepareOnce(async (folder) => {
  writeFileSync(join(folder.path, "shop.json"), JSON.stringify(SHOP));
  const { publicKey } = await folder.json(["app", "create", "Shop"]);
  return { app: publicKey as string, args: ["--app", publicKey, "--user", "ada", "--provider", "github"] };
});

describe("relay connection put", () => {
  it("stores what standard input holds and tells everything but the tokens", async () => {
    const { folder, args } = await folderWithApp();
    const before = Date.now();
    const connection = await folder.json(["connection", "put", ...args], { input: INPUT });
    expect(connection).toEqual({
      user: "ada",
      provider: "github",
      state: "ACTIVE",
      stateReason: null,
      failedRefreshes: 0,
      lastFailedAt: null,
      lastFailure: null,
      nextTryAt: null,
      failingSince: null,
      tokenRefusedSince: null,
      expiresAt: expect.any(String),
      hasRefreshToken: true,
      scope: "a b",
      tokenType: "bearer",
      originParameters: {},
      version: 1,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    const expiresAt = Date.parse(connection.expiresAt);
    expect(expiresAt).toBeGreaterThanOrEqual(before + 3_600_000);
    expect(expiresAt).toBeLessThanOrEqual(Date.now() + 3_600_000);
    expect(await folder.json(["connection", "show", ...args])).toEqual({ ...connection, lastRefreshes: [] });
  });

  it("reads a token response as the provider's definition says, and assumes its lifetime where none is given", async () => {
    const { folder, app } = await folderWithApp();
    const oauth2 = { tokenResponseMember: "body", defaultExpiresIn: 600 };
    const definition = { name: "wrap", apiOrigins: ["https://api.wrap.example"], oauth2 };
    writeFileSync(join(folder.path, "wrap.json"), JSON.stringify(definition));
    const args = ["connection", "put", "--app", app, "--user", "ada", "--provider", "wrap"];
    const lifetimeOf = async (response: unknown) => {
      const options = { input: JSON.stringify(response), env: { RELAY_PROVIDERS: "wrap.json" } };
      const { expiresAt, updatedAt } = await folder.json(args, options);
      return Date.parse(expiresAt) - Date.parse(updatedAt);
    };
    expect(await lifetimeOf({ status: 0, body: { access_token: "canary" } })).toBe(600_000);
    expect(await lifetimeOf({ status: 0, body: { access_token: "canary", expires_in: 60 } })).toBe(60_000);
    expect(await lifetimeOf({ access_token: "canary", expires_in: null })).toBe(600_000);
  });

  it.each([
    ["the private key", (pem: string) => pem, ["--param", "issuer=ada"]],
    ["the provider's key file", (pem: string) => JSON.stringify({ type: "x", key: pem, iss: "ada" }), []],
    ["the values by their names", (pem: string) => JSON.stringify({ signing_key: pem }), ["--param", "issuer=ada"]],
  ])("stores a signing key from %s on standard input, and none that cannot sign", async (_, inputOf, params) => {
    const { folder, app } = await folderWithApp();
    const definition = {
      ...{ name: "signer", kind: "jwt_bearer", apiOrigins: ["https://api.signer.example"] },
      connectionValues: [
        { name: "signing_key", secret: true, keyFileMember: "key" },
        { name: "issuer", keyFileMember: "iss" },
      ],
      oauth2: {
        tokenEndpoint: "https://api.signer.example/token",
        assertion: { algorithm: "ES256", claims: { iss: "{issuer}" } },
      },
    };
    writeFileSync(join(folder.path, "signer.json"), JSON.stringify(definition));
    const env = { RELAY_PROVIDERS: "signer.json" };
    const args = ["connection", "put", "--app", app, "--user", "ada", "--provider", "signer", ...params];
    const pemOn = (namedCurve: string) =>
      generateKeyPairSync("ec", { namedCurve }).privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const input = inputOf(pemOn("P-256"));
    expect(await folder.json(args, { input, env })).toMatchObject({
      ...{
        state: "ACTIVE",
        tokenType: "jwt_bearer",
        expiresAt: null,
        originParameters: { issuer: "ada" },
        hasRefreshToken: true,
      },
    });
    const wrong = pemOn("P-384");
    const refused = await folder.run(args, { input: inputOf(wrong), env });
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain("signing_key: must be an elliptic curve key on P-256 for ES256.");
    expect(refused.stderr).not.toContain(wrong.slice(40, 60));
  });

  it("leaves no token in what any command prints nor in any file", async () => {
    const { folder, app, args } = await folderWithApp();
    const results = [
      await folder.run(["connection", "put", ...args], { input: INPUT }),
      await folder.run(["connection", "put", ...args, "--json"], { input: INPUT }),
      await folder.run(["connection", "list", "--app", app]),
      await folder.run(["connection", "show", ...args]),
      await folder.run(["key", "rotate"]),
      await folder.run(["connection", "delete", ...args]),
    ];
    expect(results.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0, 0, 0]);
    const files = readdirSync(folder.path).map((name) => readFileSync(join(folder.path, name), "latin1"));
    for (const text of [...files, ...results.map(({ stdout, stderr }) => stdout + stderr)]) {
      expect(text).not.toContain("canary");
    }
  });

  it.each([
    ["nothing", ""],
    ["no JSON", "canary-access-token"],
    ["no object", '["canary-access-token"]'],
    ["an error response", '{"error":"invalid_grant","canary":1}'],
    ["a token with a line break", '{"access_token":"canary\\naccess"}'],
    ["more than 64 KiB", JSON.stringify({ access_token: "canary", padding: "x".repeat(65_536) })],
    ["a lifetime below zero", JSON.stringify({ ...TOKENS, expires_in: -5 })],
    ["a lifetime that is no number", JSON.stringify({ ...TOKENS, expires_in: "canary" })],
  ])("refuses %s on standard input and quotes none of it", async (_, input) => {
    const { folder, args } = await folderWithApp();
    const result = await folder.run(["connection", "put", ...args], { input });
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).not.toBe("");
    expect(result.stderr).not.toContain("canary");
    expect((await folder.run(["connection", "show", ...args])).exitCode).toBe(1);
  });

  it("has no option for a token", async () => {
    const { folder, args } = await folderWithApp();
    const result = await folder.run(["connection", "put", ...args, "--access-token", "canary"], { input: INPUT });
    expect(result.exitCode).toBe(2);
  });

  it("refuses an unknown provider, an unknown application and an empty user", async () => {
    const { folder, app } = await folderWithApp();
    const put = (...args: string[]) => folder.run(["connection", "put", ...args], { input: INPUT });
    const noProvider = await put("--app", app, "--user", "ada", "--provider", "nobody");
    expect(noProvider).toMatchObject({ exitCode: 1, stdout: "" });
    expect(noProvider.stderr).toMatch(
      /no provider with this name\. Commands read RELAY_PROVIDERS of the terminal they run in, where it is not set;/,
    );
    const noApp = await put("--app", "nobody-at-all", "--user", "ada", "--provider", "github");
    expect(noApp).toMatchObject({ exitCode: 1, stdout: "" });
    expect(noApp.stderr).toMatch(/no application/);
    expect((await put("--app", app, "--user", "", "--provider", "github")).exitCode).toBe(2);
  });

  it("stores under the provider's name when an alias is given, with the parameters of its origin", async () => {
    const { folder, app } = await folderWithApp();
    const env = { RELAY_PROVIDERS: "shop.json" };
    const args = ["--app", app, "--user", "ada", "--provider", "old-shop"];
    const connection = await folder.json(["connection", "put", ...args, "--param", "subdomain=Acme"], {
      input: INPUT,
      env,
    });
    expect(connection).toMatchObject({ provider: "shop", originParameters: { subdomain: "acme" } });
    expect(await folder.json(["connection", "show", ...args], { env })).toEqual({ ...connection, lastRefreshes: [] });
  });

  it.each([
    ["without its parameter", [], /--param subdomain: is missing/],
    ["with an unknown parameter", ["--param", "subdomain=acme", "--param", "region=eu"], /--param region/],
    ["with a parameter twice", ["--param", "subdomain=a", "--param", "subdomain=b"], /twice/],
    ["with a value that leaves the host", ["--param", "subdomain=evil.example/"], /--param subdomain/],
    ["with a value of two labels", ["--param", "subdomain=a.b"], /--param subdomain/],
    ["with an empty value", ["--param", "subdomain="], /--param subdomain/],
    ["with no value", ["--param", "subdomain"], /name=value/],
  ])("refuses a templated origin %s", async (_, params, message) => {
    const { folder, app } = await folderWithApp();
    const args = ["connection", "put", "--app", app, "--user", "ada", "--provider", "shop", ...params];
    const result = await folder.run(args, { input: INPUT, env: { RELAY_PROVIDERS: "shop.json" } });
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(message);
  });

  it("refuses a parameter where the provider has none", async () => {
    const { folder, args } = await folderWithApp();
    const result = await folder.run(["connection", "put", ...args, "--param", "__proto__=x"], { input: INPUT });
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/takes no parameters/);
  });

  it("replaces the tokens of a connection that exists", async () => {
    const { folder, args } = await folderWithApp();
    const first = await folder.json(["connection", "put", ...args], { input: INPUT });
    const second = await folder.json(["connection", "put", ...args], { input: '{"access_token":"canary-2"}' });
    expect(second).toMatchObject({ version: 2, createdAt: first.createdAt, expiresAt: null, hasRefreshToken: false });
  });
});

describe("relay connection list, show, delete", () => {
  it("lists by user, up to a limit, and says that there are more", async () => {
    const { folder, app } = await folderWithApp();
    for (const user of ["ada", "bob", "eve\u001b[31m"]) {
      await folder.json(["connection", "put", "--app", app, "--user", user, "--provider", "github"], { input: INPUT });
    }
    const users = (list: ReadonlyArray<{ user: string }>) => list.map(({ user }) => user);
    expect(users(await folder.json(["connection", "list", "--app", app]))).toEqual(["ada", "bob", "eve\u001b[31m"]);
    expect(users(await folder.json(["connection", "list", "--app", app, "--user", "bob"]))).toEqual(["bob"]);
    const limited = await folder.run(["connection", "list", "--app", app, "--limit", "2", "--json"]);
    expect(users(JSON.parse(limited.stdout))).toEqual(["ada", "bob"]);
    expect(limited.stderr).toMatch(/more than 2/);
    const { stdout, stderr } = await folder.run(["connection", "list", "--app", app, "--limit", "3"]);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^USER +PROVIDER +STATE +TOKEN EXPIRES\nada +github +ACTIVE +\d{4}-/);
    expect(stdout).not.toContain("\u001b");
  });

  it("deletes one connection, also of a provider that is gone from the catalogue", async () => {
    const { folder, app } = await folderWithApp();
    const args = ["--app", app, "--user", "ada", "--provider", "shop"];
    const put = { input: INPUT, env: { RELAY_PROVIDERS: "shop.json" } };
    await folder.json(["connection", "put", ...args, "--param", "subdomain=acme"], put);
    expect(await folder.json(["connection", "delete", ...args])).toEqual({
      user: "ada",
      provider: "shop",
      deleted: true,
      revocation: "NOT_SUPPORTED",
    });
    const again = await folder.run(["connection", "delete", ...args]);
    expect(again).toMatchObject({ exitCode: 1, stdout: "" });
    expect(again.stderr).toMatch(/no connection/);
  });
});

import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { createFolder } from "./run-relay.js";

const DEFINITION = { name: "acme", aliases: ["acme-old"], apiOrigins: ["https://api.acme.example"] };

function folderWith(files: Readonly<Record<string, unknown>>) {
  const folder = createFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder.path, name)), { recursive: true });
    writeFileSync(join(folder.path, name), typeof content === "string" ? content : JSON.stringify(content));
  }
  return folder;
}

describe("relay provider", () => {
  it("lists the shipped definitions and those of RELAY_PROVIDERS", async () => {
    const folder = folderWith({ "acme.json": DEFINITION });
    const names = (await folder.json(["provider", "list"])).map(({ name }: { name: string }) => name);
    expect(names).toContain("github");
    expect(names).not.toContain("acme");
    const env = { RELAY_PROVIDERS: "acme.json" };
    const { stdout } = await folder.run(["provider", "list", "--search", "acme"], { env });
    expect(stdout).toMatch(
      /^NAME +DISPLAY NAME +KIND +ALIASES +API ORIGINS\nacme +acme +oauth2 +acme-old +https:\/\/api\.acme\.example\n/,
    );
    expect(await folder.json(["provider", "show", "acme-old"], { env })).toMatchObject(DEFINITION);
  });

  it("lists those with a text in a name, an alias or an origin, in any case", async () => {
    const found = async (text: string) =>
      (await createFolder().json(["provider", "list", "--search", text])).map(({ name }: { name: string }) => name);
    expect(await found("GitHub")).toEqual(["github", "githubkey"]);
    expect(await found("twitter-v2")).toEqual(["twitteroauth2"]);
    expect(await found("uploads.linear")).toEqual(["linear", "linearkey"]);
    expect(await found("no such provider")).toEqual([]);
  });

  it("says what a definition lacks for users to connect, and to refresh and revoke tokens", async () => {
    const { stdout } = await createFolder().run(["provider", "check", "github", "gitlab", "woocommerce", "ebay"]);
    expect(stdout.split("\n")).toEqual([
      "github: ok (github)",
      "  connect: ok",
      "  refresh: nothing to refresh: access tokens do not expire",
      "  revoke: oauth2.revocationEndpoint is missing",
      "gitlab: ok (gitlab)",
      "  connect: ok",
      "  refresh: ok",
      "  revoke: ok",
      "woocommerce: ok (woocommerce)",
      "  connect: oauth2.authorizationEndpoint is missing, oauth2.tokenEndpoint is missing",
      "  refresh: nothing to refresh: access tokens do not expire",
      "  revoke: oauth2.revocationEndpoint is missing",
      "ebay: ok (ebay)",
      "  connect: ok",
      "  refresh: ok",
      "  revoke: oauth2.revocationEndpoint is missing",
      "  client: needs 'relay client put --param ru_name=VALUE'",
      "",
    ]);
    const json = await folderWith({ "acme.json": DEFINITION }).json(["provider", "check", "acme.json"]);
    expect(json.providers).toEqual([
      {
        file: "acme.json",
        provider: "acme",
        lacks: {
          connect: ["oauth2.authorizationEndpoint is missing", "oauth2.tokenEndpoint is missing"],
          refresh: ["oauth2.tokenEndpoint is missing"],
          revoke: ["oauth2.revocationEndpoint is missing"],
        },
        clientNeeds: [],
      },
    ]);
    expect(await createFolder().run(["provider", "check", "nobody"])).toMatchObject({ exitCode: 1, stdout: "" });
  });

  it("checks all files of a folder, as RELAY_PROVIDERS reads it; the name of a provider counts first", async () => {
    const folder = folderWith({ "github/acme.json": DEFINITION, "own/a.json": DEFINITION, "own/b.json": "{}" });
    const checked = await folder.run(["provider", "check", "own", "--json"]);
    expect(checked.exitCode).toBe(1);
    const { providers, problems } = JSON.parse(checked.stdout);
    expect(providers).toMatchObject([{ file: "own/a.json", provider: "acme" }]);
    expect(problems[0]).toMatchObject({ file: "own/b.json", field: "name" });
    expect((await folder.run(["provider", "check", "github"])).stdout).toContain("github: ok (github)");
    expect((await folder.run(["provider", "check", "./github"])).stdout).toContain("github/acme.json: ok (acme)");
    symlinkSync("loop.json", join(folder.path, "loop.json"));
    expect((await folder.run(["provider", "check", "loop.json"])).stderr).toBe("loop.json cannot be read (ELOOP).\n");
  });

  it("shows a definition that check accepts", async () => {
    const { stdout } = await createFolder().run(["provider", "list", "--json"]);
    const definitions: ReadonlyArray<{ name: string }> = JSON.parse(stdout);
    const files = Object.fromEntries(definitions.map((definition) => [`${definition.name}.json`, definition]));
    const result = await folderWith(files).json(["provider", "check", ...Object.keys(files)]);
    expect(result).toMatchObject({ ok: true, problems: [] });
    expect(result.providers).toHaveLength(definitions.length);
  });

  it("says that there is no provider of a name", async () => {
    const result = await createFolder().run(["provider", "show", "constructor"]);
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toMatch(/no provider with this name/);
  });

  it("names file and field of every problem", async () => {
    const folder = folderWith({
      "good.json": DEFINITION,
      "bad.json": { name: "Bad", apiOrigins: ["http://api.bad.example"], apiOrigin: "x" },
      "broken.json": "{",
    });
    const result = await folder.run(["provider", "check", "good.json", "bad.json", "broken.json"]);
    expect(result.exitCode).toBe(1);
    expect(result.stdout).toMatch(/^good\.json: ok \(acme\)\n {2}connect: /);
    expect(result.stderr).toMatch(/^bad\.json: apiOrigin: /m);
    expect(result.stderr).toMatch(/^broken\.json: /m);
    const json = await folder.run(["provider", "check", "bad.json", "--json"]);
    expect(json.exitCode).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, problems: [{ file: "bad.json", field: "apiOrigin" }] });
  });

  it("reads the whole definition when its members are known", async () => {
    const result = await folderWith({ "a.json": { name: "A", apiOrigins: ["http://a.example"] } }).run([
      "provider",
      "check",
      "a.json",
    ]);
    expect(result.stderr).toMatch(/^a\.json: name: .*\na\.json: apiOrigins\[0\]: .*\n$/);
  });

  it("finds an alias that another provider has", async () => {
    const folder = folderWith({ "acme.json": { ...DEFINITION, aliases: ["github"] } });
    const result = await folder.run(["provider", "check", "acme.json"]);
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toMatch(/aliases\[0\]: github/);
  });

  it("passes loopback only where the relay would", async () => {
    const folder = folderWith({ "local.json": { name: "local", apiOrigins: ["http://127.0.0.1:9000"] } });
    expect((await folder.run(["provider", "check", "local.json"])).exitCode).toBe(1);
    expect(
      (await folder.run(["provider", "check", "local.json"], { env: { RELAY_ALLOW_LOOPBACK: "true" } })).exitCode,
    ).toBe(0);
  });

  it("says which file cannot be read", async () => {
    const result = await createFolder().run(["provider", "check", "missing.json"]);
    expect(result).toMatchObject({ exitCode: 1, stdout: "", stderr: "missing.json cannot be read (ENOENT).\n" });
  });
});

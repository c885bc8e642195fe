import { describe, expect, it } from "vitest";
import { parseDuration } from "../../src/cli/token.js";
import { createFolder } from "./run-relay.js";

const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());

async function withApplication(...options: readonly string[]) {
  const folder = createFolder();
  const { publicKey } = await folder.json(["app", "create", "Shop", "--caller-auth", "private-key", ...options]);
  return { folder, publicKey, at: ["--app", publicKey, "--user", "ada"] };
}

describe("relay token create", () => {
  it("prints a token for the user, the providers and the rule that are given", async () => {
    const { folder, publicKey, at } = await withApplication();
    const rule = ["--method", "get", "--method", "HEAD", "--host", "api.github.com", "--path", "/repos/acme/**"];
    const { stdout, stderr } = await folder.run([
      "token",
      "create",
      ...at,
      "--provider",
      "github",
      "--ttl",
      "2m",
      ...rule,
    ]);
    const { iat, exp, ...claims } = claimsOf(stdout.trim());
    expect({ ...claims, lifetime: exp - iat, stderr }).toEqual({
      iss: publicKey,
      sub: "ada",
      aud: "provider-call-relay",
      providers: ["github"],
      rules: [{ methods: ["GET", "HEAD"], hosts: ["api.github.com"], paths: ["/repos/acme/**"] }],
      lifetime: 120,
      stderr: "",
    });
    const [record] = await folder.json(["audit", "list"]);
    expect(record).toMatchObject({
      method: expect.stringContaining("CreateCallToken"),
      resource: `applications/${publicKey}/users/ada`,
    });
    expect(JSON.stringify(record)).not.toContain(stdout.trim().split(".")[2]);
  });

  it("makes one for a quarter of an hour without rules, and says when it ends", async () => {
    const { folder, at } = await withApplication();
    const { callToken, expiresAt } = await folder.json(["token", "create", ...at]);
    const { iat, exp, rules, providers } = claimsOf(callToken);
    expect({ lifetime: exp - iat, rules, providers }).toEqual({ lifetime: 900 });
    expect(Date.parse(expiresAt)).toBe(exp * 1000);
  });

  it("makes none for a disabled application, in whose name it would be good again later", async () => {
    const { folder, publicKey, at } = await withApplication();
    await folder.json(["app", "update", publicKey, "--disable"]);
    const refused = { exitCode: 1, stdout: "", stderr: expect.stringContaining("disabled") };
    expect(await folder.run(["token", "create", ...at])).toMatchObject(refused);
  });

  it("warns where a call needs no token", async () => {
    const folder = createFolder();
    const { publicKey } = await folder.json(["app", "create", "Shop"]);
    const { exitCode, stderr } = await folder.run(["token", "create", "--app", publicKey, "--user", "ada"]);
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining("bypass its rules")]);
  });

  it.each([
    [["--ttl", "25h"], 2, "86400"],
    [["--ttl", "15"], 2, "such as 15m"],
    [["--ttl", "0m"], 2, "such as 15m"],
    [["--path", "repos"], 2, "whose paths"],
    [["--method", "FORM"], 2, "whose methods"],
    [["--host", "*.github.com"], 2, "whose hosts"],
    [["--provider", "nobody"], 1, "no provider"],
    [["--user", ""], 2, "user_id is missing"],
    [["--user", "x".repeat(257)], 2, "longer than 256"],
  ])("refuses %j", async (options, exitCode, text) => {
    const { folder, at } = await withApplication();
    const finished = await folder.run(["token", "create", ...at, ...options]);
    expect(finished).toMatchObject({ exitCode, stdout: "", stderr: expect.stringContaining(text) });
  });
});

describe("relay app with rules and lifetimes", () => {
  const RULES = '{"github":[{"methods":["GET"],"paths":["/user/**"]}]}';

  it("sets, shows and takes away what all calls must fit", async () => {
    const { folder, publicKey, at } = await withApplication("--max-token-ttl", "1h");
    expect((await folder.run(["token", "create", ...at, "--ttl", "61m"])).stderr).toContain("3600");
    const updated = await folder.json(["app", "update", publicKey, "--call-rules", "-", "--max-token-ttl", "2h"], {
      input: RULES,
    });
    expect(updated).toMatchObject({ callRules: JSON.parse(RULES), maxCallTokenSeconds: 7200 });
    const { stdout } = await folder.run(["app", "show", publicKey]);
    expect(stdout).toMatch(/call rules +github \(1\)/);
    expect(await folder.json(["app", "update", publicKey, "--name", "B"])).toMatchObject({
      callRules: JSON.parse(RULES),
    });
    expect(await folder.json(["app", "update", publicKey, "--no-call-rules"])).toMatchObject({ callRules: {} });
    const made = await folder.json(["app", "create", "C", "--call-rules", "-"], { input: RULES });
    expect(await folder.json(["app", "show", made.publicKey])).toMatchObject({ callRules: JSON.parse(RULES) });
  });

  it.each([
    ["[]", "JSON object"],
    ["{", "JSON object"],
    ['{"github":[{}],"github":[{"methods":["GET"]}]}', "without duplicate members"],
    ['{"github":[]}', "github: must be a list of 1 to 100 rules"],
    ['{"nobody":[{}]}', "nobody: is not a known provider"],
  ])("refuses %s", async (input, text) => {
    const { folder, publicKey } = await withApplication();
    const finished = await folder.run(["app", "update", publicKey, "--call-rules", "-"], { input });
    expect(finished).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(text) });
  });

  it("refuses a lifetime of more than a day", async () => {
    const { folder, publicKey } = await withApplication();
    expect(await folder.run(["app", "update", publicKey, "--max-token-ttl", "25h"])).toMatchObject({ exitCode: 2 });
  });
});

describe("parseDuration()", () => {
  it.each([
    ["90s", 90],
    ["15m", 900],
    ["8h", 28_800],
  ])("reads %s", (text, seconds) => expect(parseDuration(text)).toBe(seconds));
  it.each(["", "15", "m", "1.5h", "-1m", "1d", "15 m", "1e3s"])("refuses %j", (text) =>
    expect(() => parseDuration(text)).toThrow("such as 15m"),
  );
});

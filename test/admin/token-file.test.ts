import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createAuthenticate, hashAdminToken, loadAdminTokens, parseTokenFile } from "../../src/admin/admit.js";

const A = "CANARY_a_token_of_more_than_32_characters";
const B = "CANARY_b_token_of_more_than_32_characters";

function createPath(): string {
  const folder = mkdtempSync(join(tmpdir(), "relay-tokens-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "admin.tokens");
}

describe("parseTokenFile()", () => {
  it("reads names, roles and tokens, whatever is blank or a comment", () => {
    const text = `# NAME ROLE TOKEN\n\nalice operator ${A}\r\n  bob\tread-only  ${B}\t\n  # end`;
    expect(parseTokenFile(text, "f")).toEqual([
      { name: "alice", role: "operator", hash: hashAdminToken(A) },
      { name: "bob", role: "read-only", hash: hashAdminToken(B) },
    ]);
  });

  it.each([
    ["no role", `alice ${A}`, "line 1: must be NAME ROLE TOKEN"],
    ["a word too many", `alice operator ${A} x`, "line 1: must be NAME ROLE TOKEN"],
    ["a name that could be a user's of the command line", `cli:root operator ${A}`, "line 1: the name must be"],
    ["an unknown role", `\nalice admin ${A}`, "line 2: the role must be one of read-only, operator"],
    ["a role of another case", `alice Operator ${A}`, "line 1: the role must be"],
    ["a short token", "alice operator CANARY_31_characters_is_too_few", "line 1: the token must be 32"],
    ["a long token", `alice operator ${"CANARY".repeat(50)}`, "line 1: the token must be 32"],
    ["a token that no header can hold", `alice operator ${A}é`, "line 1: the token must be"],
    [
      "the same token again",
      `alice operator ${A}\nbob read-only ${A}`,
      "line 2: this token is also on an earlier line",
    ],
    ["nothing", "# only a comment\n", "has no token"],
  ])("refuses %s, and never quotes a token", (_what, text, problem) => {
    const parse = () => parseTokenFile(text, "some.tokens");
    expect(parse).toThrow(`Token file some.tokens: ${problem}`);
    expect(parse).not.toThrow(/CANARY/);
  });
});

describe("loadAdminTokens()", () => {
  it("makes a file for its owner alone with one operator, once", async () => {
    const path = createPath();
    let made = 0;
    const load = () => loadAdminTokens(path, { mustExist: false, onCreated: () => made++ });
    const [one, other] = await Promise.all([load(), load()]);
    expect(one).toEqual(other);
    expect(one).toMatchObject([{ name: "operator", role: "operator" }]);
    expect([made, statSync(path).mode & 0o777]).toEqual([1, 0o600]);
    const token = /^operator operator (relay_admin_[\w-]{43})$/m.exec(readFileSync(path, "utf8"))?.[1] ?? "";
    const authenticate = createAuthenticate(one);
    expect(authenticate({ headers: { authorization: `Bearer ${token}` } })).toEqual({
      name: "operator",
      role: "operator",
    });
  });

  it("makes none in production", async () => {
    const load = loadAdminTokens(createPath(), { mustExist: true, onCreated: () => {} });
    await expect(load).rejects.toThrow(/does not exist; create it/);
  });
});

describe("createAuthenticate()", () => {
  const authenticate = createAuthenticate(parseTokenFile(`alice operator ${A}\nalice operator ${B}`, "f"));
  const withField = (authorization: string | undefined) => authenticate({ headers: { authorization } });

  it("knows every token, also two of one name", () => {
    const alice = { name: "alice", role: "operator" };
    expect([withField(`Bearer ${A}`), withField(`bearer  ${B}`)]).toEqual([alice, alice]);
  });

  it.each([
    undefined,
    "",
    A,
    "Bearer",
    "Bearer ",
    `Basic ${A}`,
    `Bearer ${A} `,
    `Bearer ${A},Bearer ${B}`,
    `Bearer ${A.toLowerCase()}`,
    `Bearer ${A.slice(0, -1)}`,
    `Bearer ${A}=`,
  ])("knows nobody by %j", (field) => {
    expect(withField(field)).toBeUndefined();
  });
});

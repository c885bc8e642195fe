import { execFile } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CallForm, EMPTY_FORM, readCall, snippetsFor } from "../../src/console/snippets.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { thin } from "../support/long.js";

const run = promisify(execFile);
const FILE = resolve("dist/console-snippet.mts");

let harness: Harness;
let application: TestApplication;
beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication({ callerAuth: "PRIVATE_KEY" });
});
afterAll(() => harness.close());

/** Ids and texts that would do something, if they could. */
const HOSTILE = 'it\'s "$(touch ran)" `touch ran`; touch ran\n\\u001b[201~ \u001b\u009b\u202e\u2028';

function formFor(userId: string): CallForm {
  return {
    ...EMPTY_FORM,
    publicKey: application.publicKey,
    userId,
    providerName: "sandbox",
    privateKey: application.privateKey,
    method: "POST",
    url: `${harness.sandbox.origin}/echo?q='`,
    payload: '{"id": 9007199254740993, "text": "it\'s $(touch ran)"}',
    headers: "X-One: it's $HOME",
  };
}

/** Name → text. */
function snippets(form: CallForm): ReadonlyMap<string, string> {
  const all = snippetsFor(form, harness.url);
  return new Map(all.map(({ name, text }) => [name, text]));
}

describe.each(thin([HOSTILE, "ada"]))("what is copied, for the user %j", (userId) => {
  beforeAll(() => harness.connect(application, userId));
  afterAll(() => expect(existsSync("ran")).toBe(false));

  const env = () => ({ ...process.env, RELAY_PRIVATE_KEY: application.privateKey });
  const text = (name: string) => snippets(formFor(userId)).get(name) ?? "";

  it("is a call with curl, the payload byte for byte", async () => {
    const { stdout } = await run("bash", ["-c", text("curl")], { env: env() });
    const [row] = JSON.parse(stdout).rows;
    expect(row).toMatchObject({ pincStatus: "success", data: { method: "POST", target: "/echo?q='" } });
    expect(row.data.body).toBe('{"id": 9007199254740993, "text": "it\'s $(touch ran)"}');
    expect(row.data.headers).toEqual(expect.arrayContaining([["X-One", "it's $HOME"]]));
  });

  it("is a call with buf curl", async () => {
    const { stdout } = await run("bash", ["-c", text("buf curl")], { env: env() });
    expect(JSON.parse(stdout)).toMatchObject({ rows: [{ pincStatus: "success", data: { method: "POST" } }] });
  });

  it("is a call with TypeScript", async () => {
    writeFileSync(FILE, text("TypeScript"));
    const { stdout } = await run("npx", ["tsx", FILE], { env: env() }).finally(() => rmSync(FILE));
    expect(stdout).toContain("pincStatus: 'success'");
    expect(stdout).not.toContain("$typeName");
  });

  it("holds no key, and nothing that moves a cursor or hides text", () => {
    for (const snippet of snippets(formFor(userId)).values()) {
      expect(snippet).not.toContain(application.privateKey);
      expect(snippet.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    }
  });
});

describe("readCall()", () => {
  it.each([
    ["payload", "[1]"],
    ["payload", "{"],
    ["payload", "null"],
    ["headers", "no colon"],
    ["headers", ": no name"],
  ] as const)("names the field %s that holds %j", (field, value) => {
    expect(() => readCall({ ...EMPTY_FORM, [field]: value })).toThrow(expect.objectContaining({ field }));
  });

  it.each([
    ["payload", '{"a": 1, "b": 2, "a": 3}', "a"],
    ["payload", '{"list": [{"a": {}}, {"a": 1, "\\u0061" : 2}]}', "a"],
    ["payload", '{"{\\"": 1, "{\\"": 2}', '{"'],
    ["headers", "X-One: 1\nX-Two: 2\nX-One : 3", "X-One"],
    ["headers", "__proto__: 1\n__proto__: 2", "__proto__"],
  ] as const)("refuses %s that have a name twice: %j", (field, value, name) => {
    const wrong = expect.objectContaining({ field, message: `${name} is given twice.` });
    expect(() => readCall({ ...EMPTY_FORM, [field]: value })).toThrow(wrong);
  });

  it("takes a name in several objects, and as a value", () => {
    const payload = '{"a": {"a": "a"}, "b": [{"a": "\\"a\\":"}, "a", {"a": "}"}]}';
    expect(readCall({ ...EMPTY_FORM, payload }).call?.payload).toEqual(JSON.parse(payload));
  });

  it("takes what the relay can judge itself as it is", () => {
    expect(readCall({ ...EMPTY_FORM, url: "nowhere", headers: "A: b: c\n\n B : d ", payload: " " })).toMatchObject({
      call: { url: "nowhere", method: "GET", payload: {}, headers: { A: "b: c", B: "d" } },
    });
  });
});

import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openBrowser } from "../pages/browser.js";
import { BACK, connectIn, startAt } from "../pages/flow.js";
import { ADMIN_TOKENS, type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { functionsEntered, type Repeatable } from "../support/run-trace.js";

/** Most files of src that one warm call over the JSON route may enter, and changes of folder from one to the next. */
const MAX_FILES = 45;
const MAX_FOLDER_CHANGES = 25;

const page = readFileSync("docs/architecture.md", "utf8");

/** The steps of a section, each `file:function`. */
function stepsOf(heading: string): string[] {
  const section = page.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? "";
  return [...section.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, step = ""]) => step);
}

let harness: Harness;
let application: TestApplication;
let count = 0;

beforeAll(async () => {
  harness = await startHarness({ env: { RELAY_LOG_LEVEL: "info" } });
  application = await harness.createApplication({ allowedRedirectUris: [BACK] });
  await harness.putClient(application);
  await harness.connect(application, "ada");
  for (let at = 0; at < 10; at += 1) await call("ada");
});

afterAll(() => harness.close());

async function post(url: string, body: object, headers: Readonly<Record<string, string>> = {}) {
  const answer = await request(url, { method: "POST", body: JSON.stringify(body), headers });
  return answer.body.json();
}

async function call(userId: string): Promise<void> {
  const query = new URLSearchParams({ user_id: userId, public_key: application.publicKey });
  const answer = await post(`${harness.url}/oauth/method/sandbox/call?${query}`, {
    url: `${harness.sandbox.origin}/me`,
    method: "GET",
  });
  expect(answer).toMatchObject({ rows: [{ pincStatus: "success" }] });
}

async function connectEnded(userId: string): Promise<void> {
  const refreshToken = harness.sandbox.issueToken().refresh_token as string;
  await harness.connect(application, userId, { refreshToken, expiresAt: 1 });
}

async function connectInBrowser(userId: string): Promise<void> {
  const seen = await connectIn(openBrowser(), startAt(harness, application, userId, { redirect_uri: BACK }));
  expect(seen.location).toContain("outcome=success");
}

async function update(callsPerMinute: number): Promise<void> {
  const headers = { authorization: `Bearer ${ADMIN_TOKENS.operator}`, "content-type": "application/json" };
  const body = { application: { publicKey: application.publicKey, callsPerMinute }, updateMask: "callsPerMinute" };
  const answer = await post(`${harness.adminUrl}/relay.admin.v1.ApplicationService/UpdateApplication`, body, headers);
  expect(answer).toMatchObject({ callsPerMinute });
}

/** What each section tells, done anew each time. */
const WAYS: Readonly<Record<string, Repeatable>> = {
  "One call over the JSON route": { run: () => call("ada") },
  "One refresh": { prepare: () => connectEnded(`bob-${++count}`), run: () => call(`bob-${count}`) },
  "One connect flow": { run: () => connectInBrowser(`carl-${++count}`) },
  "One administration request": { run: () => update(10_000 + ++count) },
};

describe("docs/architecture.md", () => {
  it.each(Object.entries(WAYS))("tells the functions that are entered, in their order: %s", async (heading, way) => {
    const steps = stepsOf(heading);
    expect(steps.length).toBeGreaterThan(7);
    const nameOf = (place: string) => place.slice(place.indexOf(":"));
    const names = new Set(steps.map(nameOf));
    const entered = await functionsEntered(way, (place) => names.has(nameOf(place)));
    const elsewhere = entered.filter((place) => !steps.includes(place));
    expect(
      entered.filter((place) => steps.includes(place)),
      `entered as well, by the same names: ${elsewhere.join(", ")}`,
    ).toEqual(steps);
  });

  it("has every folder of src, in the order of the import rules", () => {
    const folders = [...(page.split("<!-- layers -->")[1] ?? "").matchAll(/^\| `([^`]+)` \|/gm)].map(
      ([, name]) => name,
    );
    const { forbidden } = createRequire(import.meta.url)("../../.dependency-cruiser.cjs");
    const ruled = (forbidden as { name: string }[]).flatMap(
      ({ name }) => /^(\S+) is left of those$/.exec(name)?.[1] ?? [],
    );
    expect(folders).toEqual(ruled);
    const there = readdirSync("src", { recursive: true, withFileTypes: true }).filter((each) =>
      each.name.endsWith(".ts"),
    );
    const inSrc = new Set(there.map(({ parentPath }) => parentPath.replace(/^src\/?/, "")));
    const left = [...inSrc].filter(
      (folder) => !folders.includes(folder) && !/^$|^console$|\/(?:wasm|texts)$/.test(folder),
    );
    expect(left).toEqual([]);
  });
});

describe("one warm call over the JSON route", () => {
  it("stays within few files and folders", async () => {
    const entered = await functionsEntered({ run: () => call("ada") });
    const files = [...new Set(entered.map((place) => place.slice(0, place.indexOf(":"))))];
    const changes = files.filter((file, at) => at > 0 && dirname(file) !== dirname(files[at - 1] ?? "")).length;
    process.stdout.write(
      `One warm JSON call enters ${files.length} files of src, with ${changes} changes of folder.\n`,
    );
    expect(files.length).toBeLessThanOrEqual(MAX_FILES);
    expect(changes).toBeLessThanOrEqual(MAX_FOLDER_CHANGES);
  });
});

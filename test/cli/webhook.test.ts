import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type CliFolder, createFolder, prepareOnce } from "./run-relay.js";

const URI = "https://app.example.com/webhooks/relay";
const LOOPBACK = { RELAY_ALLOW_LOOPBACK: "true" };

const folderWithApp = prepareOnce(async (folder) => {
  const { publicKey } = await folder.json(["app", "create", "Shop"]);
  return { app: publicKey as string };
});

const connect = (folder: CliFolder, app: string, user: string) =>
  folder.json(["connection", "put", "--app", app, "--user", user, "--provider", "github"], {
    input: '{"access_token":"canary-access"}',
  });

describe("relay webhook", () => {
  it("put prints the address and a secret, this once, and show never the secret", async () => {
    const { folder, app } = await folderWithApp();
    const before = Date.now();
    const put = await folder.json(["webhook", "put", "--app", app, URI]);
    expect(put).toEqual({ uri: URI, secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/) });
    const shown = await folder.json(["webhook", "show", "--app", app]);
    expect(shown).toEqual({ uri: URI, updatedAt: expect.any(String), waiting: 0, waitingSince: null });
    expect(Date.parse(shown.updatedAt)).toBeGreaterThanOrEqual(before);
    const { stdout, stderr } = await folder.run(["webhook", "show", "--app", app]);
    expect(stdout).toContain(URI);
    expect(stdout + stderr).not.toContain(put.secret);
    for (const name of readdirSync(folder.path)) {
      expect(readFileSync(join(folder.path, name), "latin1")).not.toContain(put.secret.slice("whsec_".length));
    }
  });

  it("put prints for a person, too, and replaces with a new secret", async () => {
    const { folder, app } = await folderWithApp();
    const first = await folder.run(["webhook", "put", "--app", app, URI]);
    expect(first).toMatchObject({ exitCode: 0, stderr: "Keep the secret now; it cannot be shown again.\n" });
    expect(first.stdout).toMatch(/^uri {5}https:\/\/app\.example\.com\/webhooks\/relay\nsecret {2}whsec_\S+\n$/);
    const second = await folder.json(["webhook", "put", "--app", app, "https://app.example.com"]);
    expect(second.uri).toBe("https://app.example.com/");
    expect(first.stdout).not.toContain(second.secret);
    expect(await folder.json(["webhook", "show", "--app", app])).toMatchObject({ uri: second.uri });
  });

  it("test queues an event that the service delivers, and deliveries lists what became of events", async () => {
    const { folder, app } = await folderWithApp();
    expect((await folder.run(["webhook", "test", "--app", app])).exitCode).toBe(1);
    await folder.json(["webhook", "put", "--app", app, URI]);
    const { eventId } = await folder.json(["webhook", "test", "--app", app]);
    expect(eventId).toMatch(/^msg_/);
    expect((await folder.json(["webhook", "show", "--app", app])).waiting).toBe(1);
    expect(await folder.json(["webhook", "deliveries", "--app", app])).toEqual([]);
  });

  it("show tells how many events wait, and since when", async () => {
    const { folder, app } = await folderWithApp();
    await connect(folder, app, "before");
    await folder.json(["webhook", "put", "--app", app, URI]);
    const from = Date.now();
    await connect(folder, app, "ada");
    const until = Date.now();
    await folder.json(["connection", "delete", "--app", app, "--user", "ada", "--provider", "github"]);
    const { waiting, waitingSince } = await folder.json(["webhook", "show", "--app", app]);
    expect(waiting).toBe(2);
    expect(Date.parse(waitingSince)).toBeGreaterThanOrEqual(from);
    expect(Date.parse(waitingSince)).toBeLessThanOrEqual(until);
    const { stdout } = await folder.run(["webhook", "show", "--app", app]);
    expect(stdout).toContain(`2, the oldest since ${waitingSince}\n`);
  });

  it("delete ends it, with what waits", async () => {
    const { folder, app } = await folderWithApp();
    await folder.json(["webhook", "put", "--app", app, URI]);
    await connect(folder, app, "ada");
    expect(await folder.json(["webhook", "delete", "--app", app])).toEqual({ deleted: true });
    for (const command of ["show", "delete"]) {
      const result = await folder.run(["webhook", command, "--app", app]);
      expect(result).toMatchObject({ exitCode: 1, stdout: "" });
      expect(result.stderr).toBe("The application has no webhook. 'relay webhook put' creates one.\n");
    }
    await folder.json(["webhook", "put", "--app", app, URI]);
    expect(await folder.json(["webhook", "show", "--app", app])).toMatchObject({ waiting: 0 });
  });

  it.each([["put", URI], ["show"], ["delete"]])("%s says when there is no such application", async (...command) => {
    const { folder } = await folderWithApp();
    const result = await folder.run(["webhook", ...command, "--app", "nobody"]);
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toMatch(/^There is no application with this public key/);
  });

  it.each([
    ["http", "http://app.example.com/hook", /must use https/],
    [
      "a name and password",
      "https://me:canary@app.example.com/hook",
      /must not have a fragment, a user name or a password/,
    ],
    ["a fragment", "https://app.example.com/hook#part", /must not have a fragment/],
    ["an address of a private network", "https://10.0.0.1/hook", /private or special network/],
    ["this machine", "http://127.0.0.1:9000/hook", /RELAY_ALLOW_LOOPBACK/],
    ["no address", "app.example.com", /must be an https address/],
  ])("put refuses %s before anything is made", async (_, uri, problem) => {
    const folder = createFolder();
    const result = await folder.run(["webhook", "put", "--app", "some-key", uri]);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(problem);
    expect(result.stderr).not.toContain("canary");
    expect(existsSync(join(folder.path, "relay.db"))).toBe(false);
  });

  it("put takes this machine for development", async () => {
    const { folder, app } = await folderWithApp();
    const uri = "http://127.0.0.1:9000/hook";
    expect(await folder.json(["webhook", "put", "--app", app, uri], { env: LOOPBACK })).toMatchObject({ uri });
  });

  it("has a secret that stays good when the keys are rotated", async () => {
    const { folder, app } = await folderWithApp();
    await folder.json(["webhook", "put", "--app", app, URI]);
    expect(await folder.json(["key", "rotate"])).toMatchObject({ resealed: 2, left: 0 });
  });
});

import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { pngOf } from "../support/pictures.js";
import { createFolder } from "./run-relay.js";

describe("relay app", () => {
  it("prints exactly the two keys with --json, and makes key file and database for the owner alone", async () => {
    const folder = createFolder();
    const keys = await folder.json(["app", "create", "Shop"]);
    expect(Object.keys(keys)).toEqual(["publicKey", "privateKey"]);
    expect(keys.publicKey.length).toBeGreaterThanOrEqual(32);
    expect(statSync(join(folder.path, "relay.key")).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder.path, "relay.db")).mode & 0o777).toBe(0o600);
  });

  it("shows what was created, and never a private key or its hash", async () => {
    const folder = createFolder();
    const options = [
      "--caller-auth",
      "private-key",
      "--allow-origin",
      "https://a.example",
      "--allow-origin",
      "https://b.example",
    ];
    const { publicKey, privateKey } = await folder.json([
      "app",
      "create",
      "Shop",
      ...options,
      "--allow-address",
      "192.0.2.0/24",
      "--allow-redirect",
      "https://a.example/connected",
      "--allow-redirect",
      "com.example.app:/connected",
    ]);
    const application = await folder.json(["app", "show", publicKey]);
    expect(application).toEqual({
      publicKey,
      name: "Shop",
      callerAuth: "PRIVATE_KEY",
      allowedOrigins: ["https://a.example", "https://b.example"],
      allowedAddresses: ["192.0.2.0/24"],
      allowedRedirectUris: ["https://a.example/connected", "com.example.app:/connected"],
      callsPerMinute: 0,
      connectionCallsPerMinute: 0,
      callRules: {},
      maxCallTokenSeconds: 0,
      accentColor: "",
      icon: null,
      state: "ACTIVE",
      captureUntil: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      updatedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    });
    const { icon: _icon, ...listed } = application;
    expect(await folder.json(["app", "list"])).toEqual([listed]);
    const { stdout } = await folder.run(["app", "show", publicKey]);
    expect(stdout).toContain("https://a.example, https://b.example");
    expect(stdout).not.toContain(privateKey);
  });

  it("gives the mark on the connect page a colour, and takes it away", async () => {
    const folder = createFolder();
    const { publicKey } = await folder.json(["app", "create", "A", "--accent-color", "#1A73E8"]);
    expect(await folder.json(["app", "show", publicKey])).toMatchObject({ accentColor: "#1a73e8" });
    const updated = await folder.json(["app", "update", publicKey, "--accent-color", ""]);
    expect(updated).toMatchObject({ accentColor: "" });
  });

  it("gives it an icon out of a file, and takes it away", async () => {
    const folder = createFolder();
    const file = (name: string, content: Uint8Array) => {
      writeFileSync(join(folder.path, name), content);
      return join(folder.path, name);
    };
    const png = file("icon.png", pngOf(3, 2));
    const { publicKey } = await folder.json(["app", "create", "A", "--icon", png]);
    expect(await folder.json(["app", "show", publicKey])).toMatchObject({ icon: "image/png" });
    expect((await folder.run(["app", "show", publicKey])).stdout).toMatch(/^icon +image\/png$/m);
    for (const [name, content, problem] of [
      ["icon.svg", Buffer.from("<svg/>"), "--icon: must be a PNG, JPEG or WebP picture."],
      ["large.png", Buffer.concat([pngOf(3, 2), Buffer.alloc(16 * 1024)]), "is larger than 16384 bytes"],
    ] as const) {
      const refused = await folder.run(["app", "update", publicKey, "--icon", file(name, content)]);
      expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(problem) });
    }
    expect(await folder.json(["app", "update", publicKey, "--no-icon"])).toMatchObject({ icon: null });
  });

  it("keeps a public key of another service, once", async () => {
    const folder = createFolder();
    expect((await folder.json(["app", "create", "A", "--public-key", "old-key-of-ours"])).publicKey).toBe(
      "old-key-of-ours",
    );
    const again = await folder.run(["app", "create", "B", "--public-key", "old-key-of-ours"]);
    expect(again).toMatchObject({ exitCode: 1, stdout: "" });
    expect(again.stderr).toMatch(/already exists/);
  });

  it.each([
    ["an origin with a path", ["--allow-origin", "https://a.example/app"]],
    ["a colour that is none", ["--accent-color", "red"]],
    ["a colour with more behind it", ["--accent-color", "#1a73e8;}"]],
    ["every origin", ["--allow-origin", "*"]],
    ["no network", ["--allow-address", "192.0.2.0/33"]],
    ["two networks in one", ["--allow-address", "192.0.2.0/24,198.51.100.0/24"]],
    ["a public key with a space", ["--public-key", "my public key"]],
  ])("refuses %s before anything is made", async (_, options) => {
    const folder = createFolder();
    const result = await folder.run(["app", "create", "Shop", ...options]);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toContain(options[0]);
    expect(existsSync(join(folder.path, "relay.db"))).toBe(false);
  });

  it.each(["Shop\u2028Store", "Shop\nStore"])("refuses the name %j, which is not one line", async (name) => {
    const result = await createFolder().run(["app", "create", name]);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toBe("The name must be one line of 1 to 200 characters.\n");
  });

  it("captures the calls of an application by its name, and says that there is none", async () => {
    const folder = createFolder();
    const { publicKey } = await folder.json(["app", "create", "Shop"]);
    expect(await folder.json(["app", "capture", "Shop"])).toMatchObject({ publicKey });
    const result = await folder.run(["app", "capture", "Store"]);
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toMatch(/^There is no application with this public key or name\./);
  });

  it("changes what is named and nothing else", async () => {
    const folder = createFolder();
    const { publicKey } = await folder.json(["app", "create", "Shop", "--allow-origin", "https://a.example"]);
    const before = await folder.json(["app", "show", publicKey]);
    const { updatedAt: _, ...rest } = before;
    expect(await folder.json(["app", "update", publicKey, "--name", "Store", "--disable"])).toMatchObject({
      ...rest,
      name: "Store",
      state: "DISABLED",
    });
    const lists = ["--no-origins", "--allow-address", "2001:db8::/32", "--enable"];
    expect(await folder.json(["app", "update", publicKey, ...lists])).toMatchObject({
      name: "Store",
      state: "ACTIVE",
      allowedOrigins: [],
      allowedAddresses: ["2001:db8::/32"],
    });
    expect(await folder.json(["app", "update", publicKey, "--no-addresses"])).toMatchObject({ allowedAddresses: [] });
  });

  it.each([
    ["nothing", []],
    ["both states", ["--enable", "--disable"]],
    ["origins and none", ["--no-origins", "--allow-origin", "https://a.example"]],
    ["addresses and any", ["--no-addresses", "--allow-address", "192.0.2.1"]],
  ])("refuses an update that names %s", async (_, options) => {
    expect(await createFolder().run(["app", "update", "some-key", ...options])).toMatchObject({
      exitCode: 2,
      stdout: "",
    });
  });

  it("rotates the private key and prints the new one once", async () => {
    const folder = createFolder();
    const created = await folder.json(["app", "create", "Shop"]);
    const rotated = await folder.json(["app", "rotate-key", created.publicKey]);
    expect(Object.keys(rotated)).toEqual(["publicKey", "privateKey"]);
    expect(rotated.publicKey).toBe(created.publicKey);
    expect(rotated.privateKey).not.toBe(created.privateKey);
  });

  it("deletes, and then says that there is none", async () => {
    const folder = createFolder();
    const { publicKey } = await folder.json(["app", "create", "Shop"]);
    expect(await folder.json(["app", "delete", publicKey])).toEqual({ publicKey, deleted: true });
    for (const command of [["show"], ["delete"], ["rotate-key"], ["update", "--enable"]]) {
      const result = await folder.run(["app", ...command, publicKey]);
      expect(result).toMatchObject({ exitCode: 1, stdout: "" });
      expect(result.stderr).toMatch(/^There is no application .*\n$/);
    }
  });

  it("makes nothing in production: a missing file there is a wrong path", async () => {
    const folder = createFolder();
    const result = await folder.run(["app", "create", "Shop"], { env: { NODE_ENV: "production" } });
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/RELAY_DATABASE/);
    expect(existsSync(join(folder.path, "relay.db")) || existsSync(join(folder.path, "relay.key"))).toBe(false);
  });
});

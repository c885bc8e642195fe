import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createFolder } from "./run-relay.js";

describe("relay config check", () => {
  it("prints the values in effect and makes nothing", async () => {
    const folder = createFolder();
    const { ok, settings } = await folder.json(["config", "check"], { env: { RELAY_DEADLINE_MS: "1000" } });
    expect(ok).toBe(true);
    expect(settings).toMatchObject({ ...folder.env, RELAY_DEADLINE_MS: "1000", RELAY_LISTEN: "127.0.0.1:8080" });
    expect((await folder.run(["config", "check"])).stdout).toMatch(/^ok\n/);
    expect(existsSync(join(folder.path, "relay.db")) || existsSync(join(folder.path, "relay.key"))).toBe(false);
  });

  it("prints every problem at once", async () => {
    const env = { RELAY_LISTEN: "8080", RELAY_MAX_IN_FLIGHT: "0", RELAY_HTTP_STATUS: "200" };
    const result = await createFolder().run(["config", "check"], { env });
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr.trimEnd().split("\n")).toHaveLength(3);
    const json = await createFolder().run(["config", "check", "--json"], { env });
    expect(json.exitCode).toBe(2);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, problems: { length: 3 } });
  });

  it("looks into the files that the settings name", async () => {
    const folder = createFolder();
    writeFileSync(join(folder.path, "bad.json"), '{"name":"bad","apiOrigins":[]}');
    const env = {
      RELAY_PROVIDERS: "bad.json",
      RELAY_TLS_CERT: "cert.pem",
      RELAY_TLS_KEY: "key.pem",
      NODE_ENV: "production",
    };
    const { exitCode, stderr } = await folder.run(["config", "check"], { env });
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/^RELAY_TLS_CERT: cert\.pem cannot be read \(ENOENT\)$/m);
    expect(stderr).toMatch(/^RELAY_TLS_KEY: key\.pem/m);
    expect(stderr).toMatch(/^RELAY_KEY_FILE: /m);
    expect(stderr).toMatch(/^RELAY_PROVIDERS: bad\.json: apiOrigins: /m);
  });

  it("warns of a setting that does not exist, and does not take the private key for one", async () => {
    const result = await createFolder().run(["config", "check"], {
      env: { RELAY_LISTN: "x", RELAY_PRIVATE_KEY: "secret-of-ours" },
    });
    expect(result.exitCode).toBe(0);
    expect(result.stderr).toMatch(/^warning: RELAY_LISTN: .*\n$/);
    expect(result.stdout + result.stderr).not.toContain("secret-of-ours");
  });
});

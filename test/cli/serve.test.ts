import { once } from "node:events";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { request } from "undici";
import { describe, expect, it } from "vitest";
import { IS_LONG, thin } from "../support/long.js";
import { createFolder, finished, lineFrom, startServe, startServiceHere } from "./run-relay.js";

describe("relay serve", () => {
  it.each(thin(["SIGTERM", "SIGINT"]))("serves until %s, then exits with 0", async (signal) => {
    const { url, child } = await startServe(createFolder());
    const answer = await request(`${url}/healthz`);
    expect(answer.statusCode).toBe(200);
    await answer.body.dump();
    const ended = finished(child);
    child.kill(signal);
    const { exitCode, stdout } = await ended;
    expect(exitCode).toBe(0);
    const messages = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).msg);
    expect(messages.slice(-2)).toEqual(["stopping", "stopped"]);
  });

  it("exits with 2 and every problem when the environment is wrong", async () => {
    const env = { RELAY_LISTEN: "8080", RELAY_LOG_LEVEL: "loud" };
    const result = await createFolder().run(["serve"], { env });
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/^RELAY_LISTEN: .*\nRELAY_LOG_LEVEL: .*\n$/);
  });

  it("exits with a failure and a reason when the port is taken", async () => {
    const { url } = await startServiceHere(createFolder());
    const result = await createFolder().run(["serve"], { env: { RELAY_LISTEN: url.replace("http://", "") } });
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toMatch(/EADDRINUSE/);
  });

  it("does not start with a key that does not open the database", async () => {
    const [folder, other] = [createFolder(), createFolder()];
    await folder.json(["app", "create", "A"]);
    await other.json(["app", "create", "B"]);
    copyFileSync(join(other.path, "relay.key"), join(folder.path, "relay.key"));
    const result = await finished(folder.start(["serve"], { RELAY_LISTEN: "127.0.0.1:0" }));
    expect(result.exitCode).not.toBe(0);
    expect(result.stderr).toMatch(/key/);
  });

  it("names the settings of a certificate that cannot be used", async () => {
    const folder = createFolder();
    writeFileSync(join(folder.path, "cert.pem"), "none", { mode: 0o600 });
    const env = { RELAY_LISTEN: "127.0.0.1:0", RELAY_TLS_CERT: "cert.pem", RELAY_TLS_KEY: "cert.pem" };
    const { exitCode, stderr } = await folder.run(["serve"], { env });
    expect([exitCode, stderr]).toEqual([
      1,
      "The relay cannot start: RELAY_TLS_CERT, RELAY_TLS_KEY: ERR_OSSL_PEM_NO_START_LINE. 'relay config check' says more.\n",
    ]);
  });
});

/** Each starts a process or two, which take a second of two cores. */
if (IS_LONG) {
  describe("relay serve, further", () => {
    it.each([
      ["RELAY_LISTEN", { RELAY_ADMIN_LISTEN: "off" }],
      ["RELAY_ADMIN_LISTEN", { RELAY_LISTEN: "127.0.0.1:0" }],
    ])("names %s where its port is taken, and who may have it", async (setting, others) => {
      const taken = createServer().listen(0, "127.0.0.1");
      await once(taken, "listening");
      const { port } = taken.address() as AddressInfo;
      const env = { ...others, [setting]: `127.0.0.1:${port}` };
      const { exitCode, stderr } = await createFolder().run(["serve"], { env });
      taken.close();
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: `The relay cannot start: listen EADDRINUSE: address already in use 127.0.0.1:${port}. Another relay or 'relay demo' may be running there: stop it, or set ${setting} to another address.\n`,
      });
    });

    it("goes on after SIGHUP, which is for workers, and says so", async () => {
      const { url, child } = await startServe(createFolder());
      const told = lineFrom(child, (line) => (line.includes("SIGHUP is ignored") ? true : undefined));
      child.kill("SIGHUP");
      expect(await told).toBe(true);
      const answer = await request(`${url}/healthz`);
      expect(answer.statusCode).toBe(200);
      await answer.body.dump();
    });

    it("makes a token for operators at first use, and tells nobody but the file", async () => {
      const folder = createFolder();
      const { adminUrl, child } = await startServe(folder, { RELAY_ADMIN_LISTEN: "127.0.0.1:0" });
      const token = readFileSync(join(folder.path, "admin.tokens"), "utf8").trim().split(" ").at(-1) ?? "";
      const answer = await request(`${adminUrl}/relay.admin.v1.ApplicationService/ListApplications`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: "{}",
      });
      expect([answer.statusCode, await answer.body.json()]).toEqual([200, {}]);
      const ended = finished(child);
      child.kill("SIGTERM");
      const { exitCode, stdout, stderr } = await ended;
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
      expect(stdout).not.toContain(token);
    });

    it.each([
      ["missing in production", undefined, { NODE_ENV: "production" }, /^.*Token file \S+: does not exist; create it/],
      ["malformed", "alice operator CANARY_short", {}, /^.*Token file \S+: line 1: the token must be/],
    ])("does not start with a token file that is %s", async (_what, text, env, problem) => {
      const folder = createFolder();
      await folder.json(["app", "create", "A"]);
      if (text !== undefined) writeFileSync(join(folder.path, "admin.tokens"), text, { mode: 0o600 });
      const settings = { ...env, RELAY_LISTEN: "127.0.0.1:0", RELAY_ADMIN_LISTEN: "127.0.0.1:0" };
      for (const command of [["serve"], ["config", "check"]]) {
        const { exitCode, stderr } = await folder.run(command, { env: settings });
        expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringMatching(problem) });
        expect(stderr).not.toContain("CANARY");
      }
    });
  });
}

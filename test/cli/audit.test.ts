import { userInfo } from "node:os";
import { describe, expect, it } from "vitest";
import { createFolder } from "./run-relay.js";

const URI = "https://app.example.com/hook";
const ACTOR = `cli:${userInfo().username}`;

interface Line {
  readonly id: string;
  readonly time: string;
  readonly actor: string;
  readonly method: string;
  readonly resource: string;
  readonly changedFields: readonly string[];
  readonly outcome: string;
}

describe("relay audit list", () => {
  it("has what every command has changed, and no secret", async () => {
    const folder = createFolder();
    const { publicKey: key, privateKey } = await folder.json(["app", "create", "A"]);
    const at = ["--app", key, "--provider", "github"];
    await folder.json(["app", "update", key, "--name", "B", "--calls-per-minute", "5"]);
    const { privateKey: rotated } = await folder.json(["app", "rotate-key", key]);
    await folder.json(["client", "put", ...at], { input: '{"client_id":"id","client_secret":"canary-secret"}' });
    await folder.json(["connection", "put", ...at, "--user", "a/b"], { input: '{"access_token":"canary-access"}' });
    const { secret } = await folder.json(["webhook", "put", "--app", key, URI]);
    await folder.json(["connection", "delete", ...at, "--user", "a/b", "--no-revoke"]);
    await folder.json(["webhook", "delete", "--app", key]);
    await folder.json(["client", "delete", ...at]);
    const { keyId } = await folder.json(["key", "rotate"]);
    await folder.json(["app", "delete", key]);
    await folder.run(["app", "delete", key]);
    const lines = (await folder.json(["audit", "list"])) as Line[];
    expect(lines.every(({ actor, outcome }) => actor === ACTOR && outcome === "DONE")).toBe(true);
    const [app, connection] = [`applications/${key}`, `applications/${key}/users/a%2Fb/connections/github`];
    expect(
      lines.reverse().map(({ method, resource }) => [method.replace(/^relay\.admin\.v1\.\w+\./, ""), resource]),
    ).toEqual([
      ["CreateApplication", app],
      ["UpdateApplication", app],
      ["RotateApplicationKey", app],
      ["UpdateOAuthClient", `${app}/oauthClients/github`],
      ["PutConnection", connection],
      ["PutWebhook", `${app}/webhook`],
      ["DeleteConnection", connection],
      ["DeleteWebhook", `${app}/webhook`],
      ["DeleteOAuthClient", `${app}/oauthClients/github`],
      ["relay key rotate", `keys/${keyId}`],
      ["DeleteApplication", app],
    ]);
    expect(lines[1]?.changedFields).toEqual(["display_name", "calls_per_minute"]);
    const { stdout } = await folder.run(["audit", "list"]);
    expect(stdout.split("\n")[0]).toMatch(/^TIME +WHO +OUTCOME +METHOD +RESOURCE +FIELDS$/);
    for (const text of [JSON.stringify(lines), stdout]) {
      for (const each of [privateKey, rotated, secret, "canary"]) expect(text).not.toContain(each);
    }
  });

  it("goes back from a time, and is of one application", async () => {
    const folder = createFolder();
    const { publicKey } = await folder.json(["app", "create", "A"]);
    await folder.json(["app", "create", "B"]);
    const [second, first] = (await folder.json(["audit", "list"])) as [Line, Line];
    expect(await folder.json(["audit", "list", "--app", publicKey])).toEqual([first]);
    expect(await folder.json(["audit", "list", "--before", second.time])).toEqual([first]);
    expect(await folder.json(["audit", "list", "--before", "2001-01-01"])).toEqual([]);
    const limited = await folder.run(["audit", "list", "--limit", "1", "--json"]);
    expect([JSON.parse(limited.stdout), limited.stderr]).toEqual([[second], expect.stringMatching(/more than 1/)]);
    for (const wrong of ["yesterday", "2001-13-01", "2001-02-30", "2001-04-31T00:00:00Z", "2001-01-01T00:00:00"]) {
      expect((await folder.run(["audit", "list", "--before", wrong])).exitCode).toBe(2);
    }
  });
});

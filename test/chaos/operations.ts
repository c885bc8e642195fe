import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import Database from "better-sqlite3";
import { request } from "undici";
import { createRandom } from "../support/random.js";
import type { PartOptions, PartReport } from "./part.js";
import { requireListening } from "./require-listening.js";
import { startWorld, type World } from "./world.js";

/** Kills come within this of a command's start, in milliseconds: it takes about half of it. */
const MAX_LIFE_MS = 2000;
/** A probe of readiness has to tell the truth by then, in milliseconds. */
const MAX_LATE_MS = 20_000;

/** Backups and key rotations that are killed, and files and disks that go away under a running relay. */
export async function runOperations(script: string, { count, seed }: PartOptions): Promise<PartReport> {
  const reports = [await killCommands(script, { count, seed }), await moveFiles(script), await fillDisk(script)];
  return { lines: reports.flatMap(({ lines }) => lines), findings: reports.flatMap(({ findings }) => findings) };
}

async function killCommands(script: string, { count, seed }: PartOptions): Promise<PartReport> {
  const world = await startWorld(script);
  const random = createRandom(seed);
  const findings: string[] = [];
  let killed = 0;
  try {
    const user = await world.connect();
    const run = async (args: readonly string[], lifeMs?: number) => {
      const child = spawn(process.execPath, [script, ...args], {
        env: { PATH: process.env["PATH"] ?? "", ...world.env },
        stdio: "ignore",
        timeout: lifeMs,
        killSignal: "SIGKILL",
      });
      return (await once(child, "exit"))[0] as number | null;
    };
    for (let round = 0; round < count; round++) {
      const copy = join(world.folder, `copy-${round}.db`);
      for (const args of [
        ["db", "backup", copy],
        ["key", "rotate"],
      ]) {
        if ((await run(args, 1 + Math.floor(random() * MAX_LIFE_MS))) === null) killed += 1;
      }
      if (existsSync(copy) && !isWhole(copy))
        findings.push(`round ${round}: a backup that is not whole has its final name`);
    }
    const copy = join(world.folder, "last.db");
    for (const args of [
      ["db", "backup", copy],
      ["key", "rotate"],
      ["config", "check"],
    ]) {
      const code = await run(args);
      if (code !== 0) findings.push(`${args.join(" ")} after kills: exit code ${code}`);
    }
    const url = await requireListening(world, world.startRelay());
    const result = await world.call(url, user);
    if (result !== "success") findings.push(`called after rotations: ${result}`);
    const drafts = readdirSync(world.folder).filter((name) => name.startsWith("relay.key.") && name.includes(".draft"));
    if (drafts.length > 0) findings.push(`left of key files: ${drafts.join(", ")}`);
    return { lines: [`${2 * count} backups and key rotations, ${killed} of them killed`], findings };
  } finally {
    await world.close();
  }
}

function isWhole(path: string): boolean {
  const db = new Database(path, { fileMustExist: true });
  try {
    return (
      db.pragma("integrity_check", { simple: true }) === "ok" &&
      db.prepare("SELECT count(*) FROM connections").get() !== undefined
    );
  } finally {
    db.close();
  }
}

/** A relay whose database is moved away begins no refresh, and goes on when it is back. */
async function moveFiles(script: string): Promise<PartReport> {
  const world = await startWorld(script);
  const findings: string[] = [];
  try {
    const file = join(world.folder, "relay.db");
    for (const name of [file, `${file}-wal`]) {
      const url = await requireListening(world, world.startRelay());
      const user = await world.connect();
      await world.call(url, user);
      world.expire(user);
      const before = world.tokens.exchanges.length;
      execFileSync("mv", [name, `${name}-away`]);
      findings.push(...(await readinessBecomes(url, 503, `${name} moved`)));
      const result = await world.call(url, user);
      if (result === "success") findings.push(`called without ${name}: ${result}`);
      if (world.tokens.exchanges.length > before) findings.push(`a refresh was begun without ${name}`);
      execFileSync("mv", [`${name}-away`, name]);
      findings.push(...(await readinessBecomes(url, 200, `${name} back`)));
      const again = await world.call(url, user);
      if (again !== "success") findings.push(`called with ${name} again: ${again}`);
    }
    return { lines: ["the database and its log moved away and back under a running relay"], findings };
  } finally {
    await world.close();
  }
}

/** A relay on a disk that becomes full: not ready, no token lost, and ready when there is room. */
async function fillDisk(script: string): Promise<PartReport> {
  const disk = mountSmall();
  if (disk === undefined)
    return { lines: ["no small disk can be mounted here; the scene of a full one did not run"], findings: [] };
  try {
    const world = await startWorld(script, { folder: disk });
    const findings: string[] = [];
    try {
      const url = await requireListening(world, world.startRelay());
      const users = await Promise.all(Array.from({ length: 20 }, () => world.connect()));
      for (const user of users) await world.call(url, user);
      fill(disk);
      findings.push(...(await readinessBecomes(url, 503, "disk full", () => refreshAll(world, url, users))));
      rmSync(join(disk, "filler"));
      findings.push(...(await readinessBecomes(url, 200, "room again")));
      const lost = (await refreshAll(world, url, users)).filter((result) => result !== "success").length;
      if (lost > 0) findings.push(`${lost} of ${users.length} connections lost by a full disk`);
      return { lines: [`a full disk under ${users.length} connections: ${lost} lost`], findings };
    } finally {
      await world.close();
    }
  } finally {
    execFileSync("umount", ["-l", disk]);
    rmSync(disk, { recursive: true });
  }
}

/** As root alone; a plain user has no disk of a chosen size. */
function mountSmall(): string | undefined {
  const folder = join("/tmp", `relay-chaos-disk-${process.pid}`);
  mkdirSync(folder);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m,mode=0700", "none", folder], { stdio: "ignore" });
    return folder;
  } catch {
    // Not allowed: the scene says that it did not run.
    rmSync(folder, { recursive: true });
    return undefined;
  }
}

/** A relay writes meanwhile, so what is free is found out by taking it. */
function fill(disk: string): void {
  const file = openSync(join(disk, "filler"), "w");
  try {
    for (;;) writeSync(file, Buffer.alloc(4096));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
  } finally {
    closeSync(file);
  }
}

async function refreshAll(world: World, url: string, users: readonly string[]): Promise<string[]> {
  const results: string[] = [];
  for (const user of users) {
    try {
      world.expire(user);
    } catch {
      // The disk is full for this program as well: the token has ended before.
    }
    results.push(await world.call(url, user));
  }
  return results;
}

async function readinessBecomes(
  url: string,
  status: number,
  what: string,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<string[]> {
  for (const until = performance.now() + MAX_LATE_MS; performance.now() < until; await delay(200)) {
    await meanwhile();
    const { statusCode, body } = await request(`${url}/readyz`);
    await body.dump();
    if (statusCode === status) return [];
  }
  return [`${what}: /readyz did not become ${status}`];
}

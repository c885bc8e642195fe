import { execFileSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StoreOpenError } from "../../src/store/database.js";
import { openDatabase } from "../../src/store/open-database.js";
import { lineOf, startChild } from "./store-for-test.js";

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

let folder: string;
let path: string;
let umask: number;
const open: Database.Database[] = [];
beforeEach(() => {
  umask = process.umask(0o022);
  folder = mkdtempSync(join(tmpdir(), "relay-open-"));
  path = join(folder, "relay.db");
});
afterEach(() => {
  for (const db of open.splice(0)) db.close();
  process.umask(umask);
  rmSync(folder, { recursive: true, force: true });
});

function openHere(at = path): Database.Database {
  const db = openDatabase(at);
  open.push(db);
  return db;
}

describe("openDatabase()", () => {
  it("refuses what is no database and leaves it as it is", () => {
    const text = "not a database, but long enough to have a header ".repeat(100);
    writeFileSync(path, text);
    expect(() => openHere()).toThrow(new StoreOpenError(path, "is not a SQLite database; check RELAY_DATABASE"));
    expect(readdirSync(folder)).toEqual(["relay.db"]);
  });

  it("refuses another program's database and leaves it as it is", () => {
    const other = new Database(path);
    other.exec("CREATE TABLE theirs (a)");
    other.close();
    chmodSync(path, 0o664);
    expect(() => openHere()).toThrow("belongs to another program");
    const again = new Database(path);
    expect(again.pragma("journal_mode", { simple: true })).toBe("delete");
    expect(again.pragma("user_version", { simple: true })).toBe(0);
    again.close();
    expect(modeOf(path)).toBe("664");
  });

  it("refuses what is no file, such as a pipe or a device, and leaves it as it is", () => {
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", ["-m", "666", pipe]);
    symlinkSync(pipe, path);
    // Opened here as well: who opens a pipe alone waits for another.
    const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
    for (const at of [pipe, path]) expect(() => openHere(at)).toThrow(new StoreOpenError(at, "is not a file"));
    closeSync(fd);
    expect(modeOf(pipe)).toBe("666");
    expect(readdirSync(folder).sort()).toEqual(["pipe", "relay.db"]);
  });

  it("refuses a folder, a file as a folder, and a name that ends in white space", () => {
    mkdirSync(path);
    expect(() => openHere()).toThrow(`Database ${path}: is not a file`);
    writeFileSync(join(folder, "file"), "");
    expect(() => openHere(join(folder, "file", "relay.db"))).toThrow(/cannot be opened \((ENOTDIR|EEXIST)\)/);
    expect(() => openHere(join(folder, "x.db "))).toThrow("must not end in white space");
    expect(readdirSync(folder).sort()).toEqual(["file", "relay.db"]);
  });

  it("takes names that SQLite would read as something else for what they are: files", () => {
    const here = process.cwd();
    process.chdir(folder);
    try {
      openHere(":memory:");
      openHere("file:x.db?mode=memory");
      expect(readdirSync(folder)).toEqual(expect.arrayContaining([":memory:", "file:x.db?mode=memory"]));
    } finally {
      process.chdir(here);
    }
  });

  it("keeps database, WAL and shared memory for the owner alone, whatever the umask", () => {
    const here = process.cwd();
    process.chdir(folder);
    try {
      const db = openHere("data/relay.db");
      db.exec("DELETE FROM applications");
    } finally {
      process.chdir(here);
    }
    const names = readdirSync(join(folder, "data")).sort();
    expect(names).toEqual(["relay.db", "relay.db-shm", "relay.db-wal"]);
    for (const name of names) expect([name, modeOf(join(folder, "data", name))]).toEqual([name, "600"]);
    expect(modeOf(join(folder, "data"))).toBe("700");
  });

  it("makes no store elsewhere: behind a link to nothing, or in an absolute folder that does not exist", () => {
    symlinkSync(join(folder, "unmounted", "relay.db"), path);
    mkdirSync(join(folder, "unmounted"));
    expect(() => openHere()).toThrow("is a link to a file that does not exist");
    expect(readdirSync(join(folder, "unmounted"))).toEqual([]);
    for (const at of [join(folder, "nope", "relay.db"), "/proc/nope/relay.db"]) {
      expect(() => openHere(at)).toThrow("cannot be opened (ENOENT)");
    }
    expect(readdirSync(folder).sort()).toEqual(["relay.db", "unmounted"]);
  });

  it("closes files to others that were open to them", () => {
    openHere();
    for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o664);
    openHere();
    expect(readdirSync(folder).map((name) => modeOf(join(folder, name)))).toEqual(["600", "600", "600"]);
  });

  it("sets every pragma, also on a second connection and after a restart", () => {
    const values = () =>
      ["journal_mode", "synchronous", "busy_timeout", "foreign_keys", "secure_delete", "trusted_schema"].map((name) =>
        open.at(-1)?.pragma(name, { simple: true }),
      );
    const expected = ["wal", 2, 250, 1, 1, 0];
    openHere();
    expect(values()).toEqual(expected);
    openHere();
    expect(values()).toEqual(expected);
    for (const db of open.splice(0)) db.close();
    openHere();
    expect(values()).toEqual(expected);
  });

  it("can be opened for the first time by many processes at once", async () => {
    const children = Array.from({ length: 4 }, () => startChild({ file: "child-open.ts" }, folder, "15"));
    try {
      await Promise.all(children.map((child) => lineOf(child, "ready ")));
      for (const child of children) child.stdin?.write(String(Date.now() + 200));
      const answers = await Promise.all(children.map((child) => lineOf(child, "opened ")));
      const keyIds = answers[0]?.slice("opened ".length).split(",") ?? [];
      expect([new Set(answers).size, keyIds.length, new Set(keyIds).size]).toEqual([1, 30, 15]);
    } finally {
      for (const child of children) child.kill("SIGKILL");
    }
  });
});

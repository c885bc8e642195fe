import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { inspect } from "node:util";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { addKey, KeyFileError, loadKeyring, parseKeyFile } from "../../src/sealing/keyring.js";
import { createSealer } from "../../src/sealing/seal.js";
import { BINDING } from "../oauth/sealer-for-test.js";

const createKeyFile = (path: string) => loadKeyring(path, { mustExist: false });

const line = (id: string) => `${id}:${randomBytes(32).toString("base64")}`;
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

let folder: string;
let path: string;
let umask: number;
beforeEach(() => {
  umask = process.umask(0o022);
  folder = mkdtempSync(join(tmpdir(), "relay-keys-"));
  path = join(folder, "relay.key");
});
afterEach(() => {
  process.umask(umask);
  rmSync(folder, { recursive: true, force: true });
});

describe("parseKeyFile()", () => {
  const short = Buffer.alloc(31, 7).toString("base64");
  const long = Buffer.alloc(33, 7).toString("base64");
  const good = Buffer.alloc(32, 7).toString("base64");
  it.each([
    ["", "has no key"],
    ["\n\n", "has no key"],
    ["# only a comment\n", "has no key"],
    ["nothing", "line 1: must be keyId:base64"],
    [good, "line 1: must be keyId:base64"],
    [`:${good}`, "line 1: the key id"],
    [`${"k".repeat(65)}:${good}`, "line 1: the key id"],
    [`k 1:${good}`, "line 1: the key id"],
    [`é:${good}`, "line 1: the key id"],
    ["k1:", "line 1: the key must be 32 bytes"],
    [`k1:${short}`, "line 1: the key must be 32 bytes"],
    [`k1:${long}`, "line 1: the key must be 32 bytes"],
    [`k1:${good.slice(0, -1)}`, "line 1: the key must be 32 bytes"],
    [`k1: ${good}`, "line 1: the key must be 32 bytes"],
    [`k1:${good} `, "line 1: the key must be 32 bytes"],
    [`k1:${good.slice(0, -2)}d=`, "line 1: the key must be 32 bytes"],
    [`k1:${Buffer.alloc(32, 0xff).toString("base64url")}=`, "line 1: the key must be 32 bytes"],
    [`k1:${good}\nk2:${short}`, "line 2: the key must be 32 bytes"],
    [`k1:${good}\n# c\n\nk1:${good}`, "line 4: this key id is already on an earlier line"],
    [`\uFEFFk1:${good}`, "line 1: the key id"],
  ])("refuses %j", (text, problem) => {
    expect(() => parseKeyFile(text, "/x/relay.key")).toThrow(KeyFileError);
    try {
      parseKeyFile(text, "/x/relay.key");
    } catch (error) {
      expect((error as Error).message).toContain(`Key file /x/relay.key: ${problem}`);
      for (const key of [good, short, long]) expect(inspect(error)).not.toContain(key.slice(0, 20));
    }
  });

  it("reads keys in order, with blank lines, comments and Windows line ends", () => {
    const keys = parseKeyFile(`# mine\r\n${line("b")}\r\n\r\n${line("a")}\r\n`, path);
    expect(keys.map((key) => key.id)).toEqual(["b", "a"]);
    expect(keys[0].key.export()).toHaveLength(32);
  });

  it("does not print a key", () => {
    const bytes = Buffer.alloc(32, 0x41);
    const printed = inspect(parseKeyFile(`k1:${bytes.toString("base64")}`, path), { depth: 9, showHidden: true });
    for (const form of [bytes.toString(), bytes.toString("base64"), bytes.toString("hex")])
      expect(printed).not.toContain(form);
  });
});

describe("loadKeyring()", () => {
  it("does not create the file when it must exist", async () => {
    await expect(loadKeyring(path, { mustExist: true })).rejects.toThrow(`Key file ${path}: does not exist`);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("creates the file once, for the owner alone, and the folder of a relative name too", async () => {
    const here = process.cwd();
    process.chdir(folder);
    try {
      const nested = "data/relay.key";
      const first = await loadKeyring(nested, { mustExist: false });
      expect([modeOf(nested), modeOf("data"), readdirSync("data")]).toEqual(["600", "700", ["relay.key"]]);
      const again = await loadKeyring(nested, { mustExist: true });
      expect(again.current.id).toBe(first.current.id);
      expect(again.current.key.equals(first.current.key)).toBe(true);
    } finally {
      process.chdir(here);
    }
  });

  it.each(["/proc/nowhere/relay.key", "missing/relay.key"])(
    "makes no folder for %s, which is absolute",
    async (name) => {
      const absolute = resolve(folder, name);
      await expect(loadKeyring(absolute, { mustExist: false })).rejects.toThrow("cannot be created (ENOENT)");
      expect(readdirSync(folder)).toEqual([]);
    },
  );

  it("removes what processes that were killed left of their drafts, and nothing of others", async () => {
    const drafts = ["relay.key.0123456789ab.draft", "relay.key.0123456789ab.draft-journal"];
    const others = ["relay.key.backup.draft", "relay.key2.0123456789ab.draft"];
    for (const name of [...drafts, ...others]) writeFileSync(join(folder, name), "half");
    await createKeyFile(path);
    expect(readdirSync(folder).sort()).toEqual(["relay.key", ...others].sort());
  });

  it("creates one key when many start at once", async () => {
    const rings = await Promise.all(Array.from({ length: 20 }, () => loadKeyring(path, { mustExist: false })));
    expect(new Set(rings.map((ring) => ring.current.id)).size).toBe(1);
    expect(readdirSync(folder)).toEqual(["relay.key"]);
  });

  it("names a file that is malformed, a folder, or cannot be created, and leaves it", async () => {
    writeFileSync(path, "CANARY");
    await expect(loadKeyring(path, { mustExist: false })).rejects.toThrow(`Key file ${path}: line 1`);
    expect(readFileSync(path, "utf8")).toBe("CANARY");
    await expect(loadKeyring(folder, { mustExist: false })).rejects.toThrow("cannot be read (EISDIR)");
    await expect(loadKeyring(join(path, "x"), { mustExist: false })).rejects.toThrow(
      /cannot be created \((ENOTDIR|EEXIST)\)/,
    );
  });
});

describe("find()", () => {
  it("follows a rotation while it runs", async () => {
    const ring = await loadKeyring(path, { mustExist: false });
    const sealer = createSealer(ring);
    const before = sealer.seal("old", BINDING);
    const id = await addKey(path);
    const rotated = createSealer(await loadKeyring(path, { mustExist: true }));
    const after = rotated.seal("new", BINDING);
    expect(rotated.currentKeyId).toBe(id);
    expect(sealer.currentKeyId).not.toBe(id);
    expect(sealer.open(after, BINDING).toString()).toBe("new");
    expect(sealer.currentKeyId).toBe(id);
    expect(sealer.open(before, BINDING).toString()).toBe("old");
    expect(rotated.open(before, BINDING).toString()).toBe("old");
  });

  it("leaves digests under every key of the file to be found by, the current one first", async () => {
    const made: string[] = [];
    for (let key = 0; key < 3; key += 1) {
      const sealer = createSealer(await loadKeyring(path, { mustExist: key > 0 }));
      made.unshift(sealer.digest("purpose", "text"));
      expect(sealer.digests("purpose", "text")).toEqual(made);
      await addKey(path);
    }
    expect(new Set(made).size).toBe(3);
  });

  it("finds a new key even right after a miss", async () => {
    const ring = await loadKeyring(path, { mustExist: false });
    expect(ring.find("bogus")).toBeUndefined();
    const id = await addKey(path);
    expect(ring.find("bogus")).toBeUndefined();
    const second = await addKey(path);
    expect([ring.find(second)?.id, ring.find(id)?.id]).toEqual([second, id]);
  });

  it("follows a file that was edited in place", async () => {
    writeFileSync(path, `${line("k1")}\n`);
    const ring = await loadKeyring(path, { mustExist: true });
    writeFileSync(path, `${line("k2")}\n${readFileSync(path, "utf8")}`);
    expect([ring.find("k2")?.id, ring.current.id, ring.find("k1")?.id]).toEqual(["k2", "k2", "k1"]);
  });

  it("follows a file whose keys have changed places", async () => {
    const [k1, k2] = [`${line("k1")}\n`, `${line("k2")}\n`];
    writeFileSync(path, k1 + k2);
    const ring = await loadKeyring(path, { mustExist: true });
    writeFileSync(path, k2 + k1);
    expect([ring.find("k2")?.id, ring.current.id, ring.all.map(({ id }) => id)]).toEqual(["k2", "k2", ["k2", "k1"]]);
    writeFileSync(path, "half a li");
    expect([ring.find("k1")?.id, ring.current.id]).toEqual(["k1", "k2"]);
  });

  it("keeps the keys it has when the file goes bad, and tells of it once per change", async () => {
    writeFileSync(path, `${line("k1")}\n`);
    const ring = await loadKeyring(path, { mustExist: true });
    writeFileSync(path, "half a li");
    expect(() => ring.find("k2")).toThrow(KeyFileError);
    expect(ring.find("k2")).toBeUndefined();
    renameSync(path, `${path}.away`);
    expect(() => ring.find("k2")).toThrow("does not exist");
    expect([ring.current.id, ring.find("k1")?.id]).toEqual(["k1", "k1"]);
  });

  it("reads a file that could not be opened once more, although it has not changed", () => {
    writeFileSync(path, line("k1"));
    // In a process of its own, since it takes every file descriptor that it may have.
    const script = `
      import { closeSync, openSync, renameSync, writeFileSync } from "node:fs";
      import { loadKeyring } from ${JSON.stringify(new URL("../../src/sealing/keyring.ts", import.meta.url).href)};
      const [path, text] = process.argv.slice(1);
      const ring = await loadKeyring(path, { mustExist: true });
      writeFileSync(path + ".new", text);
      renameSync(path + ".new", path);
      const taken = [];
      try { for (;;) taken.push(openSync("/dev/null")); } catch {}
      let problem;
      try { ring.find("k2"); } catch (error) { problem = error.message; }
      taken.forEach(closeSync);
      console.log(JSON.stringify([problem, ring.find("k2")?.id, ring.current.id]));`;
    const node = [process.execPath, "--import", "tsx", "--input-type=module", "--eval", script];
    const limited = [
      "-c",
      'ulimit -n 256; exec "$@"',
      "sh",
      ...node,
      path,
      `${line("k2")}\n${readFileSync(path, "utf8")}`,
    ];
    // tsx would write its cache in a thread meanwhile, and free descriptors again.
    const env = { ...process.env, TSX_DISABLE_CACHE: "1" };
    const { stdout, stderr } = spawnSync("sh", limited, { encoding: "utf8", env });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual([expect.stringContaining("cannot be read (EMFILE)"), "k2", "k2"]);
  });

  it("keeps a key in use when its line is taken out or altered", async () => {
    writeFileSync(path, `${line("k1")}\n`);
    const ring = await loadKeyring(path, { mustExist: true });
    const key = ring.current.key;
    writeFileSync(path, `${line("k3")}\n${line("k1")}\n`);
    expect(ring.find("k3")?.id).toBe("k3");
    expect(ring.find("k1")?.key.equals(key)).toBe(true);
  });
});

describe("addKey()", () => {
  it("puts the new key first and keeps everything else, owner and mode included", async () => {
    const old = `# mine\n${line("k1")}`;
    writeFileSync(path, old);
    chmodSync(path, 0o640);
    const id = await addKey(path);
    const text = readFileSync(path, "utf8");
    expect(text.endsWith(`\n${old}`)).toBe(true);
    expect(parseKeyFile(text, path).map((key) => key.id)).toEqual([id, "k1"]);
    expect([modeOf(path), readdirSync(folder)]).toEqual(["640", ["relay.key", "relay.key.lock"]]);
  });

  it("keeps a created file for the owner alone", async () => {
    await createKeyFile(path);
    await addKey(path);
    expect(modeOf(path)).toBe("600");
  });

  it("replaces the file behind a symbolic link", async () => {
    mkdirSync(join(folder, "real"));
    await createKeyFile(join(folder, "real", "relay.key"));
    symlinkSync(join(folder, "real", "relay.key"), path);
    const id = await addKey(path);
    expect(readFileSync(join(folder, "real", "relay.key"), "utf8")).toContain(id);
  });

  it("refuses a missing or malformed file and leaves nothing behind", async () => {
    await expect(addKey(path)).rejects.toThrow(`Key file ${path}: cannot be replaced (ENOENT)`);
    writeFileSync(path, "CANARY");
    await expect(addKey(path)).rejects.toThrow("line 1");
    expect([readdirSync(folder), readFileSync(path, "utf8")]).toEqual([["relay.key", "relay.key.lock"], "CANARY"]);
  });

  it("loses no key when many add one at once", async () => {
    await createKeyFile(path);
    const added = await Promise.all(Array.from({ length: 8 }, () => addKey(path)));
    const ids = parseKeyFile(readFileSync(path, "utf8"), path).map((key) => key.id);
    expect(ids).toHaveLength(9);
    expect(ids).toEqual(expect.arrayContaining(added));
    expect(readdirSync(folder)).toEqual(["relay.key", "relay.key.lock"]);
  });

  it("waits for another process that adds a key", async () => {
    await createKeyFile(path);
    const before = readFileSync(path, "utf8");
    const theirs = new Database(`${path}.lock`);
    theirs.exec("BEGIN EXCLUSIVE");
    const added = addKey(path);
    // Three that nothing keeps waiting take longer than one.
    for (const name of ["a", "b", "c"]) {
      await createKeyFile(join(folder, name));
      await addKey(join(folder, name));
    }
    expect(readFileSync(path, "utf8")).toBe(before);
    theirs.close();
    const id = await added;
    expect(parseKeyFile(readFileSync(path, "utf8"), path)[0].id).toBe(id);
  });

  it.each(["relay.key.new", "relay.key.lock", "relay.key.0123456789ab.draft"])(
    "goes on after a process that was killed and left %s",
    async (left) => {
      await createKeyFile(path);
      writeFileSync(join(folder, left), "");
      const id = await addKey(path);
      expect(parseKeyFile(readFileSync(path, "utf8"), path)[0].id).toBe(id);
      // What the versions before this one made may also be an operator's own.
      const others = left === "relay.key.new" ? [left] : [];
      expect(readdirSync(folder)).toEqual(["relay.key", "relay.key.lock", ...others]);
    },
  );
});

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { createFolder, HAS_TERMINAL, RELAY, SCRIPT } from "./run-relay.js";

describe("a command that takes long", HAS_TERMINAL, () => {
  it.each([
    [["db", "backup", "copy.db"], "Copying the database and checking the copy…"],
    [["key", "rotate"], "Sealing everything again…"],
  ])(
    "says on a terminal how far relay %s is, and takes that away at the end; in a pipe nothing",
    async (args, text) => {
      const folder = createFolder();
      await folder.json(["app", "create", "A"]);
      const line = [process.execPath, RELAY, ...args].map((word) => `'${word}'`).join(" ");
      const env = { PATH: process.env["PATH"] ?? "", ...folder.env };
      const { stdout } = await promisify(execFile)(SCRIPT, ["-qec", line, "/dev/null"], { cwd: folder.path, env });
      expect(stdout).toContain(`\r${text}\x1b[K`);
      expect(stdout.slice(stdout.lastIndexOf("\x1b[K") + 3)).toMatch(/^(copy\.db is a copy|new key)/);
      const piped = await folder.runProcess(args[0] === "db" ? ["db", "backup", "other.db"] : args);
      expect([piped.exitCode, piped.stderr]).toEqual([0, ""]);
    },
  );
});

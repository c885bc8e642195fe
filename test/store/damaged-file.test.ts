import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { identityOf, moveAside } from "../../src/store/sqlite-error.js";

it("moves a damaged file aside with what is beside it, and no other that has taken its place", () => {
  const folder = mkdtempSync(join(tmpdir(), "relay-damaged-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "calls");
  for (const name of ["calls", "calls-wal", "aside-shm"]) writeFileSync(join(folder, name), name);
  const identity = identityOf(path);
  expect(moveAside(path, join(folder, "aside"), identity)).toBe(true);
  expect(readdirSync(folder)).toEqual(["aside", "aside-wal"]);
  writeFileSync(join(folder, "new"), "");
  renameSync(join(folder, "new"), path);
  expect(moveAside(path, join(folder, "aside"), identity)).toBe(false);
  expect(moveAside(path, join(folder, "aside"), undefined)).toBe(false);
  expect(existsSync(path)).toBe(true);
});

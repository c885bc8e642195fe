import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Summary } from "./summary.js";

/** What it measures with: the scheduler's account of a process. */
const canMeasure = existsSync("/proc/self/schedstat");

describe("npm run bench -- --call-token", () => {
  it("measures calls with a call token that are allowed", () => {
    const printed = execFileSync("npx", ["tsx", "test/bench/main.ts", "--built", "--call-token"], {
      encoding: "utf8",
      stdio: "pipe",
    });
    const { withoutUs, withUs, addedUs } = JSON.parse(printed);
    expect([withoutUs > 0, withUs > 0, typeof addedUs]).toEqual([true, true, "number"]);
  }, 240_000);
});

describe.skipIf(!canMeasure)("npm run bench", () => {
  it("measures each subject at each point that was asked for, and says on which machine", () => {
    const folder = mkdtempSync(join(tmpdir(), "relay-bench-test-"));
    try {
      const out = join(folder, "summary.json");
      const short = ["--built", "--rounds", "1", "--seconds", "0.2", "--warm", "0.1", "--warm-up", "0.1"];
      const chosen = [
        "--points",
        "json-1k,via-10m,grpc-body-1k,connect-data-1k",
        "--subjects",
        "bare,http-proxy,grpc-js,relay",
      ];
      execFileSync("npx", ["tsx", "test/bench/main.ts", ...short, ...chosen, "--out", out], { stdio: "pipe" });
      const { machine, rows, loopHoldMs } = JSON.parse(readFileSync(out, "utf8")) as Summary;
      expect(machine["node"]).toBe(process.version);
      expect(rows.map(({ point, subject }) => `${point} ${subject}`)).toEqual([
        "json-1k bare",
        "json-1k http-proxy",
        "json-1k relay",
        "via-10m bare",
        "via-10m http-proxy",
        "via-10m relay",
        "grpc-body-1k grpc-js",
        "grpc-body-1k relay",
        "connect-data-1k relay",
      ]);
      expect(rows.every(({ cpuUs, ratio }) => cpuUs > 0 && ratio !== undefined)).toBe(true);
      expect(Object.entries(loopHoldMs).map(([point, holds]) => [point, ...Object.keys(holds)])).toEqual([
        ["json-1k", "bare", "relay"],
        ["via-10m", "bare", "relay"],
        ["grpc-body-1k", "relay"],
        ["connect-data-1k", "relay"],
      ]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 240_000);
});

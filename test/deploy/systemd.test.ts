import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseConfig, unknownSettings } from "../../src/config/config.js";

const UNIT = readFileSync("docs/deploy/relay.service", "utf8");
/** What `systemd-analyze security` says; it may become less, and more only with a reason. */
const MOST_EXPOSURE = 1.1;

function analyze(...args: readonly string[]): string | undefined {
  try {
    return execFileSync("systemd-analyze", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

const version = Number(/systemd (\d+)/.exec(analyze("--version") ?? "")?.[1] ?? 0);

describe("docs/deploy/relay.service", () => {
  let folder: string;
  let unit: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "relay-unit-"));
    unit = join(folder, "relay.service");
    // The programs that it names must be there to be verified.
    writeFileSync(unit, UNIT.replaceAll("/usr/bin/node", process.execPath));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.skipIf(version < 250)("is accepted by systemd-analyze verify (systemd 250 or newer)", () => {
    expect(analyze("verify", unit)).toBe("");
  });

  it.skipIf(version < 250)("leaves little to somebody who breaks in (systemd 250 or newer)", () => {
    const exposure = Number(
      /exposure level for relay\.service: ([\d.]+)/.exec(analyze("security", "--offline=true", unit) ?? "")?.[1],
    );
    expect(exposure).toBeLessThanOrEqual(MOST_EXPOSURE);
  });

  it("runs and checks what is installed where the documents say", () => {
    expect(UNIT).toMatch(/^ExecStart=\/usr\/bin\/node \/opt\/relay\/dist\/src\/cli\/relay\.js serve$/m);
    expect(UNIT).toMatch(/^ExecStartPre=.* config check$/m);
    expect(UNIT).toMatch(/^EnvironmentFile=\/etc\/relay\/relay\.env$/m);
  });
});

describe("docs/deploy/relay.env", () => {
  it("has settings that are right", () => {
    const env = parseEnv(readFileSync("docs/deploy/relay.env", "utf8")) as Record<string, string>;
    expect(unknownSettings(env)).toEqual([]);
    expect(parseConfig(env)).toHaveProperty("config");
  });
});

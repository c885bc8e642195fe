import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);
const { version, scripts } = JSON.parse(readFileSync("package.json", "utf8"));
/** Where nothing listens: npm must not ask for anything. */
const NO_REGISTRY = { npm_config_registry: "http://127.0.0.1:9/" };

describe("npm run release:dry", () => {
  it("says what it would publish, without a registry", async () => {
    expect(scripts["release:dry"]).toMatch(/ && node \.ci\/release\.mjs$/);
    const { stdout } = await run("node", [".ci/release.mjs"], { env: { ...process.env, ...NO_REGISTRY } });
    expect(stdout).toMatch(new RegExp(`^provider-call-relay@${version}: \\d{3,} files, .+ packed, .+ unpacked$`, "m"));
    expect(stdout).toMatch(new RegExp(`^provider-call-relay-client@${version}: \\d{2,} files, `, "m"));
  });

  it("is told of a release by the changelog, whose newest section is the one to come", () => {
    const headings = [...readFileSync("CHANGELOG.md", "utf8").matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
    expect(headings[0]).toBe("Unreleased");
    for (const released of headings.slice(1)) expect(released).toMatch(/^\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d$/);
  });
});

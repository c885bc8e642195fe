import { existsSync, mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startService } from "../../src/app/server.js";
import { type Config, parseConfig } from "../../src/config/config.js";

let folder: string;
let config: Config;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relay-start-"));
  const parsed = parseConfig({
    RELAY_LISTEN: "127.0.0.1:0",
    RELAY_ADMIN_LISTEN: "off",
    RELAY_DATABASE: `sqlite:${join(folder, "relay.db")}`,
    RELAY_KEY_FILE: join(folder, "relay.key"),
  });
  if ("problems" in parsed) throw new Error(parsed.problems.join());
  config = parsed.config;
});

afterEach(() => rmSync(folder, { recursive: true }));

async function startAndClose(): Promise<void> {
  const service = await startService(config, { logger: pino({ level: "silent" }) });
  await service.close(0);
}

describe("startService()", () => {
  it("refuses a key that does not open the store, and changes nothing", async () => {
    await startAndClose();
    const [keyId] = readFileSync(config.keyFile, "utf8").split(":");
    const other = `${keyId}:${Buffer.alloc(32, 7).toString("base64")}\n`;
    writeFileSync(config.keyFile, other);
    await expect(startAndClose()).rejects.toThrow(/is not the key this store was sealed with/);
    expect(readFileSync(config.keyFile, "utf8")).toBe(other);
  });

  it("makes no new key beside a store that was sealed with another", async () => {
    await startAndClose();
    unlinkSync(config.keyFile);
    await expect(startAndClose()).rejects.toThrow(/does not exist; restore it/);
    expect(existsSync(config.keyFile)).toBe(false);
  });

  it("starts again with the same files", async () => {
    await startAndClose();
    await startAndClose();
  });
});

import { spawnSync } from "node:child_process";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { describeError } from "../../src/telemetry/log.js";

describe("describeError()", () => {
  it("keeps class, code and place, and nothing that an error quotes", () => {
    const cause = new Error("CANARY in a cause");
    const error = Object.assign(new TypeError("CANARY in a message", { cause }), {
      code: "ERR_X",
      headers: { authorization: "Bearer CANARY" },
    });
    const described = describeError(error);
    expect(described).toEqual({ class: "TypeError", code: "ERR_X", at: expect.stringMatching(/^at .*log\.test\.ts/) });
    expect(inspect(described, { depth: 9 })).not.toContain("CANARY");
  });

  it.each([["text"], [undefined], [{ code: 1 }]])("says of %j only what it is", (thrown) => {
    expect(describeError(thrown)).toEqual({ class: typeof thrown, code: undefined, at: undefined });
  });

  it("takes no line of a text for a place, and the code of what is behind an error that has none", () => {
    const cause = Object.assign(new Error("y"), { code: "SQLITE_FULL" });
    const described = describeError(new Error("x\n    at CANARY (file:///CANARY:1:1)", { cause }));
    expect(described).toEqual({
      class: "Error",
      code: "SQLITE_FULL",
      at: expect.stringMatching(/^at (?!.*CANARY).*log\.test/),
    });
  });

  it("takes no code that is not text", () => {
    expect(describeError(Object.assign(new Error("x"), { code: { secret: "CANARY" } })).code).toBeUndefined();
  });
});

describe("createLog()", () => {
  it.each(["process.exit(1)", "logger.fatal('fault'); process.kill(process.pid, 'SIGKILL')", ""])(
    "loses no line when the process ends by %j",
    (end) => {
      const script = `
        import { createLog } from "./dist/src/telemetry/log.js";
        const { logger } = createLog("info");
        for (let at = 0; at < 3; at++) logger.info({ at }, "call");
        ${end}`;
      const args = ["--input-type=module", "--eval", script];
      const { stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
      const lines = stdout.trim().split("\n");
      expect(lines.slice(0, 3).map((line) => JSON.parse(line).at)).toEqual([0, 1, 2]);
      expect(JSON.parse(lines[0] ?? "").time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    },
  );
});

import { describe, expect, it } from "vitest";
import { createPending } from "../../src/lib/process.js";

describe("createPending()", () => {
  it("waits for what begins while it waits, and for what fails", async () => {
    const pending = createPending();
    const ended: string[] = [];
    const first = Promise.resolve().then(() => {
      void pending.track(
        Promise.resolve()
          .then(() => Promise.resolve())
          .then(() => void ended.push("second")),
      );
      ended.push("first");
      throw new Error("first");
    });
    const tracked = pending.track(first);
    await Promise.all([pending.settled(), expect(tracked).rejects.toThrow("first")]);
    expect(ended).toEqual(["first", "second"]);
  });
});

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createLineBlocks } from "../../src/telemetry/log.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function blocksInto(written: string[]) {
  const write = (bytes: Buffer) => {
    written.push(bytes.toString());
    return bytes.length;
  };
  return createLineBlocks({ write }, () => {});
}

/** A pipe that has so much room. */
function createPipe(room: number) {
  const pipe = {
    room,
    text: "",
    write(bytes: Buffer): number {
      const taken = Math.min(pipe.room, bytes.length);
      if (taken === 0) throw Object.assign(new Error("full"), { code: "EAGAIN" });
      pipe.text += bytes.toString("latin1", 0, taken);
      pipe.room -= taken;
      return taken;
    },
  };
  return pipe;
}

describe("createLineBlocks()", () => {
  it("writes lines together after a tenth of a second, in their order", () => {
    const written: string[] = [];
    const blocks = blocksInto(written);
    blocks.write("a\n");
    vi.advanceTimersByTime(60);
    blocks.write("b\n");
    vi.advanceTimersByTime(39);
    expect(written).toEqual([]);
    vi.advanceTimersByTime(1);
    blocks.write("c\n");
    vi.advanceTimersByTime(100);
    expect(written).toEqual(["a\nb\n", "c\n"]);
  });

  it("writes a block at once when it is long", () => {
    const written: string[] = [];
    const blocks = blocksInto(written);
    for (let at = 0; at < 16; at++) blocks.write(`${"x".repeat(1023)}\n`);
    expect(written.map((text) => text.length)).toEqual([16 * 1024]);
    vi.advanceTimersByTime(1000);
    expect(written.length).toBe(1);
  });

  it("writes what waits when it is flushed, and nothing twice", () => {
    const written: string[] = [];
    const blocks = blocksInto(written);
    blocks.write("a\n");
    blocks.flushSync();
    vi.advanceTimersByTime(1000);
    expect(written).toEqual(["a\n"]);
  });

  it("loses nothing where the reader is slow", () => {
    const pipe = createPipe(10);
    const blocks = createLineBlocks(pipe, () => {});
    const lines = Array.from({ length: 5000 }, (_, at) => `{"at":${at}}\n`);
    for (const line of lines) blocks.write(line);
    for (let at = 0; pipe.text.length < lines.join("").length && at < 10_000; at++) {
      pipe.room = 7 * 13;
      vi.advanceTimersByTime(20);
    }
    expect(pipe.text).toBe(lines.join(""));
    expect(blocks.dropped).toBe(0);
  });

  it("keeps lines whole that several processes write to one pipe, however much of it is free", () => {
    let text = "";
    let room = 10_000;
    // As pipe(7) of Linux has it: up to 4,096 octets all or nothing.
    const write = (bytes: Buffer) => {
      const taken = bytes.length <= 4096 ? (bytes.length <= room ? bytes.length : 0) : Math.min(room, bytes.length);
      if (taken === 0) throw Object.assign(new Error("full"), { code: "EAGAIN" });
      text += bytes.toString("utf8", 0, taken);
      room -= taken;
      return taken;
    };
    const processes = ["a", "b"].map((name) => ({ name, blocks: createLineBlocks({ write }, () => {}, true) }));
    const lines = Array.from({ length: 600 }, (_, at) => `{"at":${at},"text":"${"é".repeat(at % 97)}"`);
    for (const line of lines) for (const { name, blocks } of processes) blocks.write(`${line},"by":"${name}"}\n`);
    for (let at = 0; at < 100; at++) {
      room = Math.min(room + 3000, 10_000);
      vi.advanceTimersByTime(20);
    }
    const read = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    for (const { name } of processes) {
      expect(read.filter(({ by }) => by === name).map(({ at }) => at)).toEqual(lines.map((_, at) => at));
    }
  });

  it("drops whole lines where nobody reads, holds no more than so much, and tells it afterwards", () => {
    const pipe = createPipe(0);
    const told: number[] = [];
    const blocks = createLineBlocks(pipe, (dropped) => told.push(dropped));
    const line = `${"x".repeat(1023)}\n`;
    for (let at = 0; at < 5 * 1024; at++) blocks.write(line);
    expect(blocks.dropped).toBe(1024);
    vi.advanceTimersByTime(10_000);
    expect(told).toEqual([]);
    pipe.room = Number.POSITIVE_INFINITY;
    vi.advanceTimersByTime(20);
    expect(pipe.text).toBe(line.repeat(4 * 1024));
    expect(told).toEqual([1024]);
    blocks.write("a\n");
    vi.advanceTimersByTime(100);
    expect(pipe.text.endsWith("\na\n")).toBe(true);
    expect(told).toEqual([1024]);
  });

  it("waits no longer than a second for a reader when it is flushed", () => {
    vi.useRealTimers();
    const pipe = createPipe(1);
    const blocks = createLineBlocks(pipe, () => {});
    blocks.write("a\n");
    blocks.flushSync();
    expect(pipe.text).toBe("a");
  });
});

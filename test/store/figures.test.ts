import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FigureFilter, type FigureRow, figuresFromText } from "../../src/records/figures.js";
import type { Store } from "../../src/store/store.js";
import { STORES, type StoreBed } from "./store-beds.js";

describe.each(STORES)("figures in $name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
  });
  afterEach(() => at.remove());

  const row = (startAt: number, figures: string, patch: Partial<FigureRow> = {}): FigureRow => ({
    ...{ span: "MINUTE", kind: "ALL", id: "", startAt, figures },
    ...patch,
  });

  async function read(filter: Partial<FigureFilter> = {}) {
    const rows: string[] = [];
    for await (const each of store.figures.read({ span: "MINUTE", kind: "ALL", id: "", fromAt: 0, ...filter }))
      rows.push(`${each.id} ${each.startAt} ${each.figures}`);
    return rows;
  }

  it("keeps what each process has counted beside that of others, the last of each", async () => {
    await store.figures.put("one", [row(60_000, "a"), row(120_000, "b")]);
    await store.figures.put("two", [row(60_000, "c"), row(60_000, "x", { kind: "PROVIDER", id: "github" })]);
    await store.figures.put("one", [row(120_000, "d")]);
    expect(await read()).toEqual([" 60000 a", " 60000 c", " 120000 d"]);
    expect(await read({ fromAt: 60_001 })).toEqual([" 120000 d"]);
    expect(await read({ kind: "PROVIDER", id: undefined })).toEqual(["github 60000 x"]);
    expect(await read({ kind: "PROVIDER", id: "slack" })).toEqual([]);
    await store.figures.put("two", [row(60_000, "p", { kind: "PAIR", id: "a github" })]);
    expect(await read({ kind: "PAIR", id: "a github" })).toEqual(["a github 60000 p"]);
    expect(await read({ span: "HOUR" })).toEqual([]);
  });

  it("reads however many there are, each once and in order", async () => {
    const rows = Array.from({ length: 700 }, (_, index) =>
      row(index, "f", { kind: "PROVIDER", id: `p${String(index % 7)}` }),
    );
    await store.figures.put("one", rows);
    const all = await read({ kind: "PROVIDER", id: undefined });
    expect([all.length, new Set(all).size]).toEqual([700, 700]);
    expect(await read({ kind: "PROVIDER", id: "p3" })).toHaveLength(100);
  });

  it("adds up what hundreds of processes have counted, each once, where two do so at the same time", async () => {
    const other = await at.open();
    const counted = (count: number) => `[${String(count)},1,[3,${String(count)}],[],[],[],[]]`;
    const put = (writer: string, startAt: number) => store.figures.put(writer, [row(startAt, counted(2))]);
    await Promise.all(Array.from({ length: 320 }, (_, writer) => put(`writer ${String(writer)}`, 60_000)));
    for (const writer of ["one", "two"]) await put(writer, 120_000);
    await store.figures.put("one", [row(60_000, counted(9), { kind: "PROVIDER", id: "github" })]);
    await Promise.all([store.figures.merge("MINUTE", 60_000), other.figures.merge("MINUTE", 60_000)]);
    const [merged, ...others] = await read();
    expect(merged).toBe(" 60000 [640,320,[3,640],[],[],[],[]]");
    expect(others).toHaveLength(2);
    expect(await read({ kind: "PROVIDER", id: undefined })).toEqual([`github 60000 ${counted(9)}`]);
    await store.figures.merge("MINUTE", 60_000);
    expect((await read())[0]).toBe(merged);
  });

  it("are read whole while others merge them", async () => {
    const counted = (count: number) => `[${String(count)},0,[],[],[],[],[]]`;
    await store.figures.put(
      "one",
      Array.from({ length: 400 }, (_, startAt) => row(startAt, counted(1))),
    );
    await store.figures.put("two", [row(299, counted(1))]);
    let calls = 0;
    let rows = 0;
    for await (const { figures } of store.figures.read({ span: "MINUTE", kind: "ALL", id: "", fromAt: 0 })) {
      if (rows === 0) await store.figures.merge("MINUTE", 299);
      rows += 1;
      calls += figuresFromText(figures).count;
    }
    expect(calls).toBe(401);
  });

  it("forgets those of a span by their age, some at a time", async () => {
    await store.figures.put("one", [row(1, "a"), row(2, "b"), row(3, "c"), row(1, "h", { span: "HOUR" })]);
    expect(await store.figures.deleteBefore("MINUTE", 3, 1)).toBe(1);
    expect(await store.figures.deleteBefore("MINUTE", 3, 10)).toBe(1);
    expect([await read(), await read({ span: "HOUR" })]).toEqual([[" 3 c"], [" 1 h"]]);
  });
});

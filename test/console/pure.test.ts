import { describe, expect, it } from "vitest";
import { frameFrom, framesFrom, liveCallFrom } from "../../src/console/frames.js";
import { createLoader, createPagedList } from "../../src/console/loading.js";
import { countText, figuresOf, msText, visibleText } from "../../src/console/text.js";

describe("visibleText()", () => {
  it.each([
    ["ada", "ada"],
    ["<b>&", "<b>&"],
    ["a\u202eb", "a\\u{202e}b"],
    ["a\u0000\u001b[2J\u009b", "a\\u{0}\\u{1b}[2J\\u{9b}"],
    ["zero\u200bwidth\u2066", "zero\\u{200b}width\\u{2066}"],
    ["\u{e0041}", "\\u{e0041}"],
    ["grüße 👋", "grüße 👋"],
  ])("shows %j", (text, shown) => {
    expect(visibleText(text)).toBe(shown);
  });
});

describe("figuresOf()", () => {
  it.each([
    [[], undefined],
    [[3], { median: 3, p95: 3, longest: 3 }],
    [[4, 1, 3, 2], { median: 2, p95: 4, longest: 4 }],
    [Array.from({ length: 100 }, (_, at) => at + 1), { median: 50, p95: 95, longest: 100 }],
  ])("of %j", (durations, figures) => {
    expect(figuresOf(durations)).toEqual(figures);
  });

  it("is written with the digits that tell something", () => {
    expect([0, 0.04, 9.96, 10.4, 9999, 12_345].map(msText)).toEqual([
      "0.0 ms",
      "0.0 ms",
      "10.0 ms",
      "10 ms",
      "9999 ms",
      "12.3 s",
    ]);
  });
});

describe("countText()", () => {
  it("has one of a thing, and several things", () => {
    expect([0, 1, 2].map((count) => countText(count, "call"))).toEqual(["0 calls", "1 call", "2 calls"]);
  });
});

describe("liveCallFrom()", () => {
  it("splits the time of a call into its parts", () => {
    const call = {
      totalDuration: "0.020s",
      tokenDuration: "0.001s",
      queueDuration: "0.002s",
      providerDuration: "0.012s",
    };
    const { totalMs, waitMs, providerMs, relayMs } = liveCallFrom(call);
    expect([totalMs, waitMs, providerMs, relayMs].map((ms) => Math.round(ms))).toEqual([20, 3, 12, 5]);
    expect(liveCallFrom({ totalDuration: "0.001s" })).toMatchObject({ relayMs: 1, providerMs: 0, waitMs: 0 });
  });
});

describe("framesFrom()", () => {
  async function read(chunks: readonly Uint8Array[]) {
    const frames = [];
    for await (const frame of framesFrom(ReadableStream.from(chunks))) frames.push(frame);
    return frames;
  }

  it("reads messages however they are cut", async () => {
    const first = frameFrom({ a: "ü" });
    const end = frameFrom({ error: { code: "unavailable" } });
    end[0] = 2;
    const bytes = Buffer.concat([first, end]);
    const expected = [
      { isEnd: false, json: { a: "ü" } },
      { isEnd: true, json: { error: { code: "unavailable" } } },
    ];
    expect(await read([bytes])).toEqual(expected);
    expect(await read([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(expected);
    expect(await read([bytes.subarray(0, -1)])).toEqual(expected.slice(0, 1));
    expect(await read([])).toEqual([]);
  });
});

describe("createPagedList()", () => {
  it("goes forward by what answers say, and back by what was, and stays where it is without an answer", async () => {
    let isAway = false;
    const list = createPagedList(
      () => {},
      async (token: string) => {
        if (isAway) throw new Error();
        return { token, nextPageToken: token === "" ? "b" : "" };
      },
    );
    await list.open();
    isAway = true;
    await list.forward();
    expect([list.value?.token, list.value?.tokens.length, list.problem === undefined]).toEqual(["", 1, false]);
    isAway = false;
    await list.forward();
    expect([list.value?.token, list.value?.tokens.length, list.problem]).toEqual(["b", 2, undefined]);
    await list.back();
    expect([list.value?.token, list.value?.tokens.length]).toEqual(["", 1]);
  });
});

describe("createLoader()", () => {
  it("keeps the answer to the last question only, and the last value beside a problem", async () => {
    const loader = createLoader<string>(() => {});
    let answer = (_value: string) => {};
    const first = loader.load(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    );
    await loader.load(async () => "second");
    answer("first");
    await first;
    expect(loader.value).toBe("second");
    await loader.load(() => Promise.reject(new Error("secret detail")));
    expect([loader.value, loader.problem, loader.isBusy]).toEqual([
      "second",
      "The console has a fault. Reload the page.",
      false,
    ]);
  });
});

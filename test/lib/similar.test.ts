import { describe, expect, it } from "vitest";
import { didYouMean } from "../../src/lib/similar.js";

const KNOWN = ["RELAY_LISTEN", "RELAY_LOG_LEVEL", "apiOrigins", "client_id", "client_secret", "url"];

describe("didYouMean()", () => {
  it.each([
    ["RELAY_LISTN", "RELAY_LISTEN"],
    ["RELAY_LSITEN", "RELAY_LISTEN"],
    ["relay_listen", "RELAY_LISTEN"],
    ["RELAY_LOGLEVEL", "RELAY_LOG_LEVEL"],
    ["apiOrigin", "apiOrigins"],
    ["clientId", "client_id"],
    ["clientSecert", "client_secret"],
    ["urls", "url"],
  ])("takes %s for %s", (word, meant) => {
    expect(didYouMean(word, KNOWN)).toBe(`. Did you mean ${meant}?`);
  });

  it.each(["", "x", "ul", "RELAY_TOTALLY_OTHER", "constructor", "__proto__", "u".repeat(100_000)])(
    "takes %s for nothing",
    (word) => {
      expect(didYouMean(word, KNOWN)).toBe("");
    },
  );
});

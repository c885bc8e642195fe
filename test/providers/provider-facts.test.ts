import { describe, expect, it } from "vitest";
import { loadProviders } from "../../src/providers/catalog.js";
import { compareWithFacts } from "../support/provider-facts.js";
import { DIFFERENCES } from "./fact-differences.js";

const { catalog } = loadProviders({ paths: [], allowLoopback: false });
const comparisons = compareWithFacts(catalog);
const reasoned = DIFFERENCES.flatMap(({ of }) => of.split(/\s+/));

describe("the shipped definitions beside what public references say", () => {
  it("are compared in more than a thousand places, of which most agree", () => {
    expect(comparisons.length).toBeGreaterThan(1000);
    expect(comparisons.filter(({ agrees }) => agrees).length).toBeGreaterThan(comparisons.length * 0.75);
  });

  it("differ only where the list says why", () => {
    const unexplained = comparisons
      .filter(({ agrees, provider, field }) => !agrees && !reasoned.includes(`${provider}.${field}`))
      .map(({ provider, field, source, ours, theirs }) => `${provider}.${field}: ${ours}, but ${source} has ${theirs}`);
    expect(unexplained).toEqual([]);
  });

  it("have no reason for a difference that is not there, and one reason each", () => {
    const different = new Set(
      comparisons.flatMap(({ agrees, provider, field }) => (agrees ? [] : `${provider}.${field}`)),
    );
    expect(reasoned.filter((name, at) => !different.has(name) || reasoned.indexOf(name) !== at)).toEqual([]);
  });
});

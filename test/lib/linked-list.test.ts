import { describe, expect, it } from "vitest";
import { LinkedList, type Links } from "../../src/lib/shares.js";

interface Entry extends Links<Entry> {
  readonly name: string;
}

function entry(name: string): Entry {
  return { name, previous: undefined, next: undefined };
}

function namesOf(list: LinkedList<Entry>): string {
  let names = "";
  for (let at = list.first; at !== undefined; at = at.next) names += at.name;
  return names;
}

describe("LinkedList", () => {
  it.each(["a", "b", "c"])("lets %s leave from where it stands, and come again at the end", (name) => {
    const entries = ["a", "b", "c"].map(entry);
    const list = new LinkedList<Entry>();
    for (const each of entries) list.add(each);
    const leaving = entries.find((each) => each.name === name) as Entry;
    list.remove(leaving);
    expect([namesOf(list), list.size]).toEqual(["abc".replace(name, ""), 2]);
    list.add(leaving);
    expect([namesOf(list), list.size]).toEqual([`${"abc".replace(name, "")}${name}`, 3]);
  });

  it("takes no notice of an entry that is not in it", () => {
    const list = new LinkedList<Entry>();
    list.remove(entry("x"));
    const only = entry("a");
    list.add(only);
    list.remove(entry("x"));
    list.remove(only);
    list.remove(only);
    expect([list.first, list.size]).toEqual([undefined, 0]);
  });
});

import { describe, expect, it } from "vitest";
import { createChunks, joinedInSteps } from "../../src/lib/chunks.js";
import { atOnce } from "../../src/lib/turns.js";

describe("joinedInSteps()", () => {
  it("leaves bytes that are held once, not in their pieces as well", () => {
    const bytes = createChunks();
    for (let at = 0; at < 40; at++) bytes.push(Buffer.alloc(10_000, at));
    const expected = Buffer.concat(bytes.pieces);
    const joined = atOnce(joinedInSteps(bytes));
    expect(joined.equals(expected)).toBe(true);
    expect(bytes.pieces.length).toBe(1);
    expect(bytes.pieces[0] === joined).toBe(true);
    bytes.push(Buffer.from("more"));
    expect(bytes.concat().equals(Buffer.concat([expected, Buffer.from("more")]))).toBe(true);
  });
});

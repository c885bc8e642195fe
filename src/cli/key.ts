import type { Command } from "commander";
import { addGroup } from "./command.js";
import { addKeyRotate } from "./key-rotate.js";

/** `relay key`: the keys that seal tokens. */
export function addKey(program: Command): void {
  const group = addGroup(program, {
    usage: "key",
    about: "Manage the keys that seal tokens.",
    examples: ["relay key rotate"],
  });
  addKeyRotate(group);
}

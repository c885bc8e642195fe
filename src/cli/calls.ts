import type { Command } from "commander";
import { addCallsList } from "./calls-list.js";
import { addCallsShow } from "./calls-show.js";
import { addGroup } from "./command.js";

/** `relay calls`: the calls that were made last. */
export function addCalls(program: Command): void {
  const group = addGroup(program, {
    usage: "calls",
    about: "Look at the last calls of applications: where they went, how they ended, and how long they took.",
    examples: ["relay calls list --app PUBLIC_KEY", "relay calls show CALL_ID"],
  });
  for (const add of [addCallsList, addCallsShow]) add(group);
}

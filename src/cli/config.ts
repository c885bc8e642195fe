import type { Command } from "commander";
import { addGroup } from "./command.js";
import { addConfigCheck } from "./config-check.js";

/** `relay config`: the settings of the environment. */
export function addConfig(program: Command): void {
  const group = addGroup(program, {
    usage: "config",
    about: "Look at the settings, all from RELAY_ variables.",
    examples: ["relay config check"],
  });
  addConfigCheck(group);
}

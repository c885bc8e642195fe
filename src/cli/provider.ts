import type { Command } from "commander";
import { addGroup } from "./command.js";
import { addProviderCheck } from "./provider-check.js";
import { addProviderList } from "./provider-list.js";
import { addProviderShow } from "./provider-show.js";

/** `relay provider`: the definitions, shipped and the operator's. */
export function addProvider(program: Command): void {
  const group = addGroup(program, {
    usage: "provider",
    about: "Look at provider definitions: those that ship with the relay, and those of RELAY_PROVIDERS.",
    examples: ["relay provider list", "relay provider check my-provider.json"],
  });
  for (const add of [addProviderList, addProviderShow, addProviderCheck]) add(group);
}

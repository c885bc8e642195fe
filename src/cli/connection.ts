import type { Command } from "commander";
import { addGroup } from "./command.js";
import { addConnectionDelete } from "./connection-delete.js";
import { addConnectionLink } from "./connection-link.js";
import { addConnectionList } from "./connection-list.js";
import { addConnectionPut } from "./connection-put.js";
import { addConnectionShow } from "./connection-show.js";

/** `relay connection`: users' accounts at providers. */
export function addConnection(program: Command): void {
  const group = addGroup(program, {
    usage: "connection",
    about: "Manage connections: the accounts of an application's users at providers. Tokens are never printed.",
    examples: ["relay connection list --app PUBLIC_KEY"],
  });
  for (const add of [addConnectionLink, addConnectionPut, addConnectionList, addConnectionShow, addConnectionDelete])
    add(group);
}

import type { Command } from "commander";
import { addClientDelete } from "./client-delete.js";
import { addClientList } from "./client-list.js";
import { addClientPut } from "./client-put.js";
import { addGroup } from "./command.js";

/** `relay client`: an application's OAuth clients, with which its users' tokens are renewed. */
export function addClient(program: Command): void {
  const group = addGroup(program, {
    usage: "client",
    about:
      "Manage an application's OAuth clients at providers, which renew its users' tokens. Secrets are never printed.",
    examples: ["relay client list --app PUBLIC_KEY"],
  });
  for (const add of [addClientPut, addClientList, addClientDelete]) add(group);
}

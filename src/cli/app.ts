import type { Command } from "commander";
import { addAppCapture } from "./app-capture.js";
import { addAppCreate } from "./app-create.js";
import { addAppDelete } from "./app-delete.js";
import { addAppList } from "./app-list.js";
import { addAppRotateKey } from "./app-rotate-key.js";
import { addAppShow } from "./app-show.js";
import { addAppUpdate } from "./app-update.js";
import { addGroup } from "./command.js";

/** `relay app`: the applications, who may call. */
export function addApp(program: Command): void {
  const group = addGroup(program, {
    usage: "app",
    about: "Manage applications: who may call.",
    examples: ['relay app create "My application"', "relay app list"],
  });
  for (const add of [addAppCreate, addAppList, addAppShow, addAppUpdate, addAppCapture, addAppRotateKey, addAppDelete])
    add(group);
}

import type { Command } from "commander";
import { deleteApplication } from "../admin/delete-application.js";
import { administrationOf } from "./administration.js";
import { noApplication } from "./application-text.js";
import { addCommand } from "./command.js";
import { withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";

/** `relay app delete` */
export function addAppDelete(group: Command): void {
  addCommand(group, {
    usage: "delete <public-key>",
    about:
      "Delete an application with all its connections. There is no way back; 'relay app update --disable' has one.",
    examples: ["relay app delete PUBLIC_KEY"],
  }).action(deleteNamed);
}

async function deleteNamed(publicKey: string, options: { readonly json?: boolean }): Promise<void> {
  const isDeleted = await withStore((open) => deleteApplication(administrationOf(open), publicKey));
  if (!isDeleted) throw noApplication();
  if (options.json) writeJson({ publicKey, deleted: true });
  else writeLine("Deleted the application and its connections.");
}

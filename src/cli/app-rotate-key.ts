import type { Command } from "commander";
import { rotateApplicationKey } from "../admin/rotate-application-key.js";
import { administrationOf } from "./administration.js";
import { noApplication } from "./application-text.js";
import { addCommand } from "./command.js";
import { withStore } from "./open-store.js";
import { writeKeys } from "./write-keys.js";

/** `relay app rotate-key` */
export function addAppRotateKey(group: Command): void {
  addCommand(group, {
    usage: "rotate-key <public-key>",
    about:
      "Give an application a new private key and print it, this once. The old one and its user signatures end now.",
    examples: ["relay app rotate-key PUBLIC_KEY"],
  }).action(rotateKey);
}

async function rotateKey(publicKey: string, options: { readonly json?: boolean }): Promise<void> {
  const privateKey = await withStore((open) => rotateApplicationKey(administrationOf(open), publicKey));
  if (privateKey === undefined) throw noApplication();
  writeKeys(publicKey, privateKey, options);
}

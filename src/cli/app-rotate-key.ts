import type { Command } from "commander";
import { createPrivateKey, sealPrivateKeyHash } from "../applications/private-key.js";
import { noApplication } from "./application-text.js";
import { addCommand } from "./command.js";
import { type OpenStore, withStore } from "./open-store.js";
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
  writeKeys(publicKey, await withStore((open) => replacePrivateKey(open, publicKey)), options);
}

async function replacePrivateKey({ store, sealer }: OpenStore, publicKey: string): Promise<string> {
  const application = await store.applications.findByPublicKey(publicKey);
  if (application === undefined) throw noApplication();
  const privateKey = createPrivateKey();
  const privateKeyHash = sealPrivateKeyHash(sealer, application.id, privateKey);
  const updated = await store.applications.update(publicKey, { privateKeyHash }, Date.now());
  if (updated === undefined) throw noApplication();
  return privateKey;
}

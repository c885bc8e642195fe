import type { Command } from "commander";
import { auditAction } from "../admin/administration.js";
import { addCommand, addGroup, failure, textFields, withProgress, writeResult } from "./command.js";
import { administrationOf, loadSealer, type OpenStore, withStore } from "./open-store.js";

/** `relay key`: the keys that seal tokens. */
export function addKey(program: Command): void {
  addGroup(program, {
    usage: "key",
    about: "Manage the keys that seal tokens.",
    examples: ["relay key rotate"],
    commands: [addKeyRotate, addKeyCreate],
  });
}

function addKeyCreate(group: Command): void {
  addCommand(group, {
    usage: "create <file>",
    about: "Create a key file with one new key, for connections from another relay.",
    examples: ["relay key create transfer.key"],
    more: `Only you can read the file (mode 0600). Copy it to the other relay, export there with --sealed, import here with
--key, and delete it in both places: anyone with this file and the exported lines can read the tokens.`,
  }).action(create);
}

async function create(file: string, options: { readonly json?: boolean }): Promise<void> {
  const { existsSync } = await import("node:fs");
  if (existsSync(file)) throw failure("The file already exists and was left unchanged.");
  const { currentKeyId: keyId } = await loadSealer(file, false);
  writeResult(options, { keyId }, textFields([["new key", keyId]]));
}

function addKeyRotate(group: Command): void {
  addCommand(group, {
    usage: "rotate",
    about: "Add a new key to the key file and reseal everything with it. A running relay keeps working.",
    examples: ["relay key rotate", "relay key rotate --no-add"],
    more: `The old keys stay in the file, below the new one, because backups of the database need them.
After an interruption, run the command again. With --no-add, everything is sealed with the first key in the file. Use
this when several machines have the file or it is a mounted secret, and you added the new key at the top yourself.`,
  })
    .option("--no-add", "add no key; seal everything with the first one in the file")
    .action(rotate);
}

interface RotateOptions {
  readonly add: boolean;
  readonly json?: boolean;
}

async function rotate(options: RotateOptions): Promise<void> {
  const { waiting, keyId, resealed, left } = await withStore((open) => rotateKey(open, options.add));
  const text = textFields([
    [options.add ? "new key" : "key", keyId],
    ["rows sealed again", String(resealed)],
    ["rows left", String(left)],
  ]);
  writeResult(options, { keyId, resealed, left }, text);
  if (waiting > 0)
    throw failure(
      `Answers from token endpoints are waiting in the spool, sealed with an older key: ${waiting}. Keep all keys in the file, start the relay to store the answers, then run this again.`,
    );
  if (left > 0)
    throw failure("Some rows are still sealed with an older key; keep all keys in the file and run this again.");
}

/** Adds a key if `isAdded`, then seals everything again. The old key has already been checked against the store. */
async function rotateKey(open: OpenStore, isAdded: boolean) {
  const { config, store } = open;
  const { addKey, createKeyLine } = await import("../sealing/keyring.js");
  const { resealAll } = await import("../store/verify-keys.js");
  const { countLeftAnswers, spoolPlaceOf } = await import("../store/spool.js");
  const countWaiting = () => countLeftAnswers(spoolPlaceOf(config, store.id));
  // A spool that cannot be read ends the command before it has changed anything.
  countWaiting();
  const key = createKeyLine();
  const keyId = isAdded ? key.id : open.sealer.currentKeyId;
  const resource = { name: `keys/${keyId}`, publicKey: "" };
  await auditAction(administrationOf(open), "relay key rotate", resource);
  if (isAdded) await addKey(config.keyFile, key);
  const sealer = await loadSealer(config.keyFile, true);
  const report = await withProgress("Sealing everything again…", (show) =>
    resealAll(store, sealer, (rows) => show(`Sealing everything again: ${rows} rows checked`)),
  );
  return { waiting: countWaiting(), keyId, ...report };
}

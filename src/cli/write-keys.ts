import { writeJson, writeLine, writeNote } from "./output.js";
import { textFields } from "./text-table.js";

/** Prints an application's keys: the one time that a private key is shown. */
export function writeKeys(publicKey: string, privateKey: string, options: { readonly json?: boolean }): void {
  if (options.json) {
    writeJson({ publicKey, privateKey });
    return;
  }
  writeLine(
    textFields([
      ["public key", publicKey],
      ["private key", privateKey],
    ]),
  );
  writeNote("Keep the private key now; it cannot be shown again.");
}

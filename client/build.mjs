// Fills the package from the build of the repository root: the compiled client and contract, and their .proto files.
import { cpSync, rmSync } from "node:fs";

const ROOT = new URL("../", import.meta.url).pathname;

for (const [from, to] of [
  ["dist/client/src", "lib"],
  ["dist/gen/relay", "gen/relay"],
  ["dist/gen/google", "gen/google"],
  ["proto/relay", "proto/relay"],
  ["proto/google", "proto/google"],
  ["LICENSE", "LICENSE"],
]) {
  rmSync(`${ROOT}client/${to}`, { recursive: true, force: true });
  cpSync(ROOT + from, `${ROOT}client/${to}`, { recursive: true });
}

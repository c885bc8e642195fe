import { resolve } from "node:path";
import type { DocumentBlock } from "../support/document-blocks.js";

const RELAY = resolve("dist/src/cli/relay.js");

/** Marks of blocks that are run one after another in one folder, with the service as the mark says. */
export const SERVICE_MARKS = ["run with the service running", "run with the service stopped", "run with PostgreSQL"];

/**
 * One shell script of a document's blocks, in their order: before each the service is started or stopped as its mark says,
 * and its line is printed, so that the output tells where it came from.
 */
export function scriptFromBlocks(blocks: readonly DocumentBlock[], replace: (text: string) => string): string {
  const parts = blocks.map(({ line, mark, text }) => {
    const service = mark === "run with the service running" ? "start_service" : "stop_service";
    return `${service}\necho "::line ${line}::"\n${replace(text)}`;
  });
  return [PRELUDE, ...parts, "stop_service"].join("\n");
}

/** The service logs to its standard output: the script reads on at "listening", and to the end when it has been stopped. */
const PRELUDE = `set -euo pipefail
service=
start_service() {
  [ -z "$service" ] || return 0
  exec 9< <(exec node '${RELAY}' serve)
  service=$!
  local line
  while read -r line <&9; do case "$line" in *'"listening"'*) return 0 ;; esac; done
  echo "the service did not start" >&2
  return 1
}
stop_service() {
  [ -n "$service" ] || return 0
  kill -TERM "$service"
  cat <&9 > /dev/null
  exec 9<&-
  service=
}
trap stop_service EXIT
`;

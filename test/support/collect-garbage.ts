import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options?: { readonly type: "minor" }) => void;

/** Collects garbage, whatever flags the process was started with. */
export function collectGarbage(): void {
  collect();
}

/** The same of new objects only. */
export function collectNewGarbage(): void {
  collect({ type: "minor" });
}

import { type Guard, guard } from "./guard.js";

/** What keeps an operator from harm, as far as tests without a build can tell. */
export const OPERATOR_GUARDS: readonly Guard[] = [
  guard("readiness: the keys open the store", ["await probeKeys(store, sealer);", ""], "server/http"),
];

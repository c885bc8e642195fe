import { createContextKey } from "@connectrpc/connect";
import type { Operator } from "./operator.js";

/** Where the services of the administration port find who is calling; undefined only where nobody was put. */
export const operatorContextKey = createContextKey<Operator | undefined>(undefined);

import type { Room } from "../../src/relay/budget.js";
import type { WorkLimits } from "../../src/turns.js";

/** Room for everything. */
export const ROOMY: Room & WorkLimits["memory"] = { reserve: () => true, owner: "somebody" };

/** Time for everything. */
export const ENDLESS: WorkLimits = { signal: undefined, deadline: Number.POSITIVE_INFINITY, memory: ROOMY };

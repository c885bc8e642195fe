import type { Room } from "../../src/call/budget.js";
import type { WorkLimits } from "../../src/lib/turns.js";

/** Room for everything. */
export const ROOMY: Room & WorkLimits["memory"] = { reserve: () => true, owner: "somebody" };

/** Time for everything. */
export const ENDLESS: WorkLimits = { signal: undefined, deadline: Number.POSITIVE_INFINITY, memory: ROOMY };

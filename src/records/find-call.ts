import { timeOfCallId } from "../model/call-id.js";
import { callsFromBlock } from "./call-block.js";
import type { CallStore } from "./call-store.js";
import type { StoredCall } from "./stored-call.js";

/** Finds a call by its id; undefined when it is not kept, or not any more. */
export async function findCall(store: Pick<CallStore, "findBlock">, callId: string): Promise<StoredCall | undefined> {
  const startedAt = timeOfCallId(callId);
  if (startedAt === undefined) return undefined;
  const block = await store.findBlock(callId, startedAt);
  return block && callsFromBlock(block).find((call) => call.callId === callId);
}

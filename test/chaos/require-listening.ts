import type { RelayProcess } from "./relay-process.js";
import type { World } from "./world.js";

/** Where a relay listens that has to start. */
export async function requireListening({ faults }: World, relay: RelayProcess): Promise<string> {
  const url = await relay.listening;
  if (url === undefined) throw new Error(`a relay did not start: ${faults.join(" ")}`);
  return url;
}

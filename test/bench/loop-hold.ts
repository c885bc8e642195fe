import { nextMessage } from "./pinned-process.js";
import type { LoadNotice, LoadOrder } from "./processes/load-order.js";
import type { Stage } from "./stage.js";
import type { Subject } from "./subject.js";

/** The longest time in milliseconds for which the subject's event loop served nobody else while it did this work. */
export async function measureLoopHold({ load }: Stage, { child }: Subject, order: LoadOrder): Promise<number> {
  load.send(order);
  await nextMessage<LoadNotice>(load);
  child.send("hold-start");
  await nextMessage<LoadNotice>(load);
  child.send("hold-stop");
  return (await nextMessage<{ holdMs: number }>(child)).holdMs;
}

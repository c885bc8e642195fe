import type { Command } from "commander";
import type { CaptureContent } from "../records/capture-content.js";
import { findCall } from "../records/find-call.js";
import { jsonFromCall, textFromCall } from "./call-text.js";
import { textFromCapture } from "./capture-text.js";
import { addCommand } from "./command.js";
import { failure } from "./exit-error.js";
import { type OpenStore, withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";

/** `relay calls show` */
export function addCallsShow(group: Command): void {
  addCommand(group, {
    usage: "show <call-id>",
    about: "Show one call by the callId of its answer, with its headers and bodies if they were captured.",
    examples: ["relay calls show CALL_ID"],
    more: "Headers and bodies are captured while 'relay app capture' says so. Credentials in them are masked.",
  }).action(show);
}

async function show(callId: string, options: { readonly json?: boolean }): Promise<void> {
  const { call, capture } = await withStore((open) => findAll(open, callId));
  if (options.json) {
    writeJson({ ...jsonFromCall(call), capture: capture ?? null });
    return;
  }
  writeLine(textFromCall(call));
  if (capture !== undefined) writeLine(`\n${textFromCapture(capture)}`);
}

async function findAll({ store, sealer }: OpenStore, callId: string) {
  const call = await findCall(store.calls, callId);
  if (call === undefined) {
    throw failure("There is no record of this call. Check the id; calls are recorded some days, and up to a number.");
  }
  return { call, capture: await captureOf({ store, sealer }, callId) };
}

async function captureOf(
  { store, sealer }: Pick<OpenStore, "store" | "sealer">,
  callId: string,
): Promise<CaptureContent | undefined> {
  const sealed = await store.captures.find(callId);
  if (sealed === undefined) return undefined;
  const { openCapture } = await import("../records/seal-capture.js");
  return openCapture(sealer, sealed);
}

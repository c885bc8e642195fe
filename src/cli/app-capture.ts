import { type Command, InvalidArgumentError } from "commander";
import { captureCalls, DEFAULT_CAPTURE_MINUTES, MAX_CAPTURE_MINUTES } from "../admin/capture-calls.js";
import type { Application } from "../applications/application.js";
import { parseInteger } from "../config/settings.js";
import { administrationOf } from "./administration.js";
import { noApplication } from "./application-text.js";
import { addCommand } from "./command.js";
import { failure, usageError } from "./exit-error.js";
import { type OpenStore, withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";

interface CaptureOptions {
  readonly minutes?: number;
  readonly off?: boolean;
  readonly json?: boolean;
}

/** `relay app capture` */
export function addAppCapture(group: Command): void {
  addCommand(group, {
    usage: "capture <application>",
    about:
      "Capture headers and bodies of an application's calls for some minutes, to find out what is wrong with them.",
    examples: ["relay app capture PUBLIC_KEY --minutes 10", 'relay app capture "My application" --off'],
    more: `The application is named by its public key or its name. The first 100 calls are captured, 4 KiB of each body,
for 24 hours; tokens are taken out, fields that say by their name that they hold a credential are masked, and all of it
is sealed like a token. 'relay calls show' prints it.`,
  })
    .option(
      "--minutes <number>",
      `how long; ${DEFAULT_CAPTURE_MINUTES} by default, ${MAX_CAPTURE_MINUTES} at most`,
      parseMinutes,
    )
    .option("--off", "stop now; what was captured stays for its 24 hours")
    .action(capture);
}

async function capture(name: string, options: CaptureOptions): Promise<void> {
  if (options.off && options.minutes !== undefined) throw usageError("Give --minutes or --off, not both.");
  const minutes = options.off ? 0 : (options.minutes ?? DEFAULT_CAPTURE_MINUTES);
  const { publicKey, captureUntil } = await withStore(async (open) => {
    const found = await findApplication(open, name);
    const updated = await captureCalls(administrationOf(open), found.publicKey, minutes);
    if (updated === undefined) throw noApplication();
    return updated;
  });
  const until = captureUntil === 0 ? null : new Date(captureUntil).toISOString();
  if (options.json) writeJson({ publicKey, captureUntil: until });
  else writeLine(until === null ? "Nothing is captured any more." : `Calls are captured until ${until}.`);
}

/** A public key names one application; a name may be that of several. */
async function findApplication({ store }: OpenStore, name: string): Promise<Application> {
  const byKey = await store.applications.findByPublicKey(name);
  if (byKey !== undefined) return byKey;
  const [found, ...others] = (await store.applications.list()).filter((each) => each.name === name);
  if (found === undefined) throw noApplication();
  if (others.length > 0) throw failure("Several applications have this name; give the public key of one.");
  return found;
}

function parseMinutes(text: string): number {
  const minutes = parseInteger(text, 1, MAX_CAPTURE_MINUTES);
  if (minutes === undefined)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_CAPTURE_MINUTES}.`);
  return minutes;
}

import { type Command, Option } from "commander";
import { updateApplication } from "../admin/update-application.js";
import type { ApplicationPatch } from "../applications/application.js";
import { administrationOf } from "./administration.js";
import { addressesFrom, callsFrom, nameFrom, originsFrom, redirectUrisFrom } from "./application-arguments.js";
import { CALLER_AUTH, jsonFromApplication, noApplication, textFromApplication } from "./application-text.js";
import { addCommand, collect } from "./command.js";
import { usageError } from "./exit-error.js";
import { withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";

interface UpdateOptions {
  readonly name?: string;
  readonly callerAuth?: string;
  readonly allowOrigin?: readonly string[];
  readonly origins: boolean;
  readonly allowAddress?: readonly string[];
  readonly addresses: boolean;
  readonly allowRedirect?: readonly string[];
  readonly redirects: boolean;
  readonly enable?: boolean;
  readonly disable?: boolean;
  readonly callsPerMinute?: string;
  readonly connectionCallsPerMinute?: string;
  readonly json?: boolean;
}

/** `relay app update` */
export function addAppUpdate(group: Command): void {
  addCommand(group, {
    usage: "update <public-key>",
    about: "Change an application; what no option names stays.",
    examples: ["relay app update PUBLIC_KEY --caller-auth private-key", "relay app update PUBLIC_KEY --disable"],
  })
    .option("--name <name>", "new name")
    .addOption(new Option("--caller-auth <proof>", "what a call must carry at least").choices([...CALLER_AUTH.keys()]))
    .option(
      "--allow-origin <origin>",
      "browser origin that may call; may stand several times; replaces the list",
      collect,
    )
    .option("--no-origins", "no browser may call")
    .option(
      "--allow-address <cidr>",
      "client addresses that may call; may stand several times; replaces the list",
      collect,
    )
    .option("--no-addresses", "any client address may call")
    .option(
      "--allow-redirect <uri>",
      "where a browser may return to after connecting; may stand several times; replaces the list",
      collect,
    )
    .option("--no-redirects", "no browser is sent back")
    .option("--calls-per-minute <number>", "most calls a minute, of all users together; 0 is no limit")
    .option("--connection-calls-per-minute <number>", "most calls a minute for each connection; 0 is no limit")
    .option("--disable", "refuse all its calls")
    .option("--enable", "take its calls again")
    .action(update);
}

async function update(publicKey: string, options: UpdateOptions): Promise<void> {
  const patch = patchFrom(options);
  const updated = await withStore((open) => updateApplication(administrationOf(open), publicKey, patch));
  if (updated === undefined) throw noApplication();
  if (options.json) writeJson(jsonFromApplication(updated));
  else writeLine(textFromApplication(updated));
}

function patchFrom(options: UpdateOptions): ApplicationPatch {
  requireNoContradiction(options);
  const callerAuth = CALLER_AUTH.get(options.callerAuth ?? "");
  const patch: ApplicationPatch = {
    ...(options.name === undefined ? {} : { name: nameFrom(options.name) }),
    ...(callerAuth === undefined ? {} : { callerAuth }),
    ...(options.allowOrigin === undefined && options.origins
      ? {}
      : { allowedOrigins: originsFrom(options.allowOrigin) }),
    ...(options.allowAddress === undefined && options.addresses
      ? {}
      : { allowedAddresses: addressesFrom(options.allowAddress) }),
    ...(options.allowRedirect === undefined && options.redirects
      ? {}
      : { allowedRedirectUris: redirectUrisFrom(options.allowRedirect) }),
    ...(options.callsPerMinute === undefined
      ? {}
      : { callsPerMinute: callsFrom(options.callsPerMinute, "--calls-per-minute") }),
    ...(options.connectionCallsPerMinute === undefined
      ? {}
      : { connectionCallsPerMinute: callsFrom(options.connectionCallsPerMinute, "--connection-calls-per-minute") }),
    ...(options.enable ? { state: "ACTIVE" } : {}),
    ...(options.disable ? { state: "DISABLED" } : {}),
  };
  if (Object.keys(patch).length === 0) throw usageError("Nothing to change; name at least one option.");
  return patch;
}

function requireNoContradiction(options: UpdateOptions): void {
  if (options.enable && options.disable) throw usageError("Give --enable or --disable, not both.");
  if (options.allowOrigin && !options.origins) throw usageError("Give --allow-origin or --no-origins, not both.");
  if (options.allowAddress && !options.addresses) {
    throw usageError("Give --allow-address or --no-addresses, not both.");
  }
  if (options.allowRedirect && !options.redirects) {
    throw usageError("Give --allow-redirect or --no-redirects, not both.");
  }
}

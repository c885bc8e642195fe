import { type Command, Option } from "commander";
import { createApplication } from "../admin/create-application.js";
import { administrationOf } from "./administration.js";
import {
  addressesFrom,
  callsFrom,
  nameFrom,
  originsFrom,
  publicKeyFrom,
  redirectUrisFrom,
} from "./application-arguments.js";
import { CALLER_AUTH } from "./application-text.js";
import { addCommand, collect } from "./command.js";
import { type OpenStore, withStore } from "./open-store.js";
import { writeKeys } from "./write-keys.js";

interface CreateOptions {
  readonly publicKey?: string;
  readonly callerAuth: string;
  readonly allowOrigin?: readonly string[];
  readonly allowAddress?: readonly string[];
  readonly allowRedirect?: readonly string[];
  readonly callsPerMinute?: string;
  readonly connectionCallsPerMinute?: string;
  readonly json?: boolean;
}

/** `relay app create` */
export function addAppCreate(group: Command): void {
  addCommand(group, {
    usage: "create <name>",
    about: "Create an application and print its keys. The private key is shown this once: the store keeps a hash.",
    examples: [
      'relay app create "My application"',
      "relay app create Web --caller-auth signed-user --allow-origin https://app.example.com --json",
    ],
  })
    .option("--public-key <key>", "keep a key that clients use already, instead of a new one")
    .addOption(
      new Option("--caller-auth <proof>", "what a call must carry at least")
        .choices([...CALLER_AUTH.keys()])
        .default("public-key"),
    )
    .option(
      "--allow-origin <origin>",
      "browser origin that may call; may stand several times; none without it",
      collect,
    )
    .option(
      "--allow-address <cidr>",
      "client addresses that may call; may stand several times; any without it",
      collect,
    )
    .option(
      "--allow-redirect <uri>",
      "where a browser may return to after connecting; may stand several times; nowhere without it",
      collect,
    )
    .option("--calls-per-minute <number>", "most calls a minute, of all users together; 0 is no limit")
    .option("--connection-calls-per-minute <number>", "most calls a minute for each connection; 0 is no limit")
    .action(create);
}

async function create(name: string, options: CreateOptions): Promise<void> {
  const input = {
    name: nameFrom(name),
    publicKey: options.publicKey === undefined ? undefined : publicKeyFrom(options.publicKey),
    callerAuth: CALLER_AUTH.get(options.callerAuth) ?? "PUBLIC_KEY",
    allowedOrigins: originsFrom(options.allowOrigin),
    allowedAddresses: addressesFrom(options.allowAddress),
    allowedRedirectUris: redirectUrisFrom(options.allowRedirect),
    callsPerMinute: callsFrom(options.callsPerMinute, "--calls-per-minute"),
    connectionCallsPerMinute: callsFrom(options.connectionCallsPerMinute, "--connection-calls-per-minute"),
    state: "ACTIVE",
  } as const;
  const create = (open: OpenStore) => createApplication(administrationOf(open), input);
  const { application, privateKey } = await withStore(create, { mayCreate: true });
  writeKeys(application.publicKey, privateKey, options);
}

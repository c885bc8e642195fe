import { type Command, Option } from "commander";
import { createApplication, deleteApplication, rotateApplicationKey } from "../admin/applications.js";
import { addAppCapture, addAppUpdate } from "./app-update.js";
import {
  addressesFrom,
  CALLER_AUTH,
  callsFrom,
  jsonFromApplication,
  nameFrom,
  noApplication,
  originsFrom,
  publicKeyFrom,
  redirectUrisFrom,
  textFromApplication,
} from "./application.js";
import { addCommand, addGroup, collect, textFields, textTable, writeJson, writeLine, writeNote } from "./command.js";
import { administrationOf, type OpenStore, withStore } from "./open-store.js";

/** `relay app`: the applications, who may call. */
export function addApp(program: Command): void {
  const group = addGroup(program, {
    usage: "app",
    about: "Manage applications: who may call.",
    examples: ['relay app create "My application"', "relay app list"],
  });
  for (const add of [addAppCreate, addAppList, addAppShow, addAppUpdate, addAppCapture, addAppRotateKey, addAppDelete])
    add(group);
}

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
function addAppCreate(group: Command): void {
  addCommand(group, {
    usage: "create <name>",
    about: "Create an application and print its keys. The private key is shown only now: the store keeps a hash.",
    examples: [
      'relay app create "My application"',
      "relay app create Web --caller-auth signed-user --allow-origin https://app.example.com --json",
    ],
  })
    .option("--public-key <key>", "use this key, which clients already have, instead of a new one")
    .addOption(
      new Option("--caller-auth <proof>", "what a call must carry at least")
        .choices([...CALLER_AUTH.keys()])
        .default("public-key"),
    )
    .option("--allow-origin <origin>", "browser origin that may call; repeatable; none by default", collect)
    .option("--allow-address <cidr>", "client addresses that may call; repeatable; any by default", collect)
    .option(
      "--allow-redirect <uri>",
      "where a browser may return to after connecting; repeatable; nowhere by default",
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

/** `relay app list` */
function addAppList(group: Command): void {
  addCommand(group, {
    usage: "list",
    about: "List the applications.",
    examples: ["relay app list", "relay app list --json"],
  }).action(listApplications);
}

async function listApplications(options: { readonly json?: boolean }): Promise<void> {
  const applications = (await withStore(({ store }) => store.applications.list())).map(jsonFromApplication);
  if (options.json) return writeJson(applications);
  const rows = applications.map(({ publicKey, name, callerAuth, state }) => [publicKey, name, callerAuth, state]);
  writeLine(textTable(["PUBLIC KEY", "NAME", "CALLER AUTH", "STATE"], rows));
}

/** `relay app show` */
function addAppShow(group: Command): void {
  addCommand(group, {
    usage: "show <public-key>",
    about: "Show one application.",
    examples: ["relay app show PUBLIC_KEY"],
  }).action(showApplication);
}

async function showApplication(publicKey: string, options: { readonly json?: boolean }): Promise<void> {
  const application = await withStore(({ store }) => store.applications.findByPublicKey(publicKey));
  if (application === undefined) throw noApplication();
  if (options.json) writeJson(jsonFromApplication(application));
  else writeLine(textFromApplication(application));
}

/** `relay app delete` */
function addAppDelete(group: Command): void {
  addCommand(group, {
    usage: "delete <public-key>",
    about: "Delete an application and all its connections. This cannot be undone; 'relay app update --disable' can.",
    examples: ["relay app delete PUBLIC_KEY"],
  }).action(deleteNamed);
}

async function deleteNamed(publicKey: string, options: { readonly json?: boolean }): Promise<void> {
  const isDeleted = await withStore((open) => deleteApplication(administrationOf(open), publicKey));
  if (!isDeleted) throw noApplication();
  if (options.json) writeJson({ publicKey, deleted: true });
  else writeLine("Deleted the application and its connections.");
}

/** `relay app rotate-key` */
function addAppRotateKey(group: Command): void {
  addCommand(group, {
    usage: "rotate-key <public-key>",
    about:
      "Give an application a new private key and print it once. The old key and its user signatures stop working now.",
    examples: ["relay app rotate-key PUBLIC_KEY"],
  }).action(rotateKey);
}

async function rotateKey(publicKey: string, options: { readonly json?: boolean }): Promise<void> {
  const privateKey = await withStore((open) => rotateApplicationKey(administrationOf(open), publicKey));
  if (privateKey === undefined) throw noApplication();
  writeKeys(publicKey, privateKey, options);
}

/** Prints an application's keys: the one time that a private key is shown. */
function writeKeys(publicKey: string, privateKey: string, options: { readonly json?: boolean }): void {
  if (options.json) {
    writeJson({ publicKey, privateKey });
    return;
  }
  writeLine(
    textFields([
      ["public key", publicKey],
      ["private key", privateKey],
    ]),
  );
  writeNote("Keep the private key now; it cannot be shown again.");
}

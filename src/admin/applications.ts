import { randomUUID } from "node:crypto";
import {
  type Application,
  type ApplicationPatch,
  type ApplicationSettings,
  createPrivateKey,
  createPublicKey,
  openPrivateKeyHash,
  type Parsed,
  parseCidr,
  parseOrigin,
  parseRedirectUri,
  sealPrivateKeyHash,
} from "../applications/application.js";
import {
  type CallRule,
  type CallRulesByProvider,
  jsonFromCallRules,
  parseCallRules,
} from "../applications/call-rules.js";
import { createCallToken, MAX_CALL_TOKEN_LENGTH, maxSecondsOf, type NewCallToken } from "../applications/call-token.js";
import type { ChangeOptions } from "../model/audit.js";
import type { ProviderCatalog } from "../providers/provider.js";
import { type Administration, applicationResource, auditEntryFrom, fieldsOf, userResource } from "./administration.js";

/** Most entries of one list of an application: each call may have to look at all of them. */
const MAX_LIST_LENGTH = 1000;
/** The greatest limit of calls a minute; more is none. */
export const MAX_CALLS_PER_MINUTE = 1_000_000;
const MAX_NAME_LENGTH = 200;

/** A list as it is stored, or what is wrong with which entry. */
export type ParsedList<Values = readonly string[]> =
  | { readonly values: Values }
  | { readonly problem: string; readonly entry: string | undefined };

/** Reads an application's name for people. */
export function parseDisplayName(text: string): Parsed {
  const name = text.trim();
  if (name !== "" && name.length <= MAX_NAME_LENGTH && !/\p{Cc}/u.test(name)) return { value: name };
  return { problem: `must be one line of 1 to ${MAX_NAME_LENGTH} characters` };
}

/** Reads the colour of an application's mark; empty for none. */
export function parseAccentColor(text: string): Parsed {
  const color = text.trim().toLowerCase();
  return /^(?:#[0-9a-f]{6})?$/.test(color) ? { value: color } : { problem: "must be a colour such as #1a73e8" };
}

/** Reads browser origins; each is kept once. */
export function parseOrigins(texts: readonly string[]): ParsedList {
  return parseList(texts, parseOrigin);
}

/** Reads client addresses; each is kept once. */
export function parseAddresses(texts: readonly string[]): ParsedList {
  return parseList(texts, parseCidr);
}

/** Reads redirect addresses; each is kept once. */
export function parseRedirectUris(texts: readonly string[]): ParsedList {
  return parseList(texts, parseRedirectUri);
}

function parseList(texts: readonly string[], parse: (text: string) => Parsed): ParsedList {
  if (texts.length > MAX_LIST_LENGTH) {
    return { problem: `must have at most ${MAX_LIST_LENGTH} entries`, entry: undefined };
  }
  const values = new Set<string>();
  for (const text of texts) {
    const parsed = parse(text);
    if ("problem" in parsed) return { problem: parsed.problem, entry: text };
    values.add(parsed.value);
  }
  return { values: [...values] };
}

/** All rules of an application, as JSON: each process keeps them with the application. */
const MAX_RULES_LENGTH = 64 * 1024;

/**
 * Reads an application's rules. A provider that is not in the catalogue is refused: rules under a name that is mistyped
 * would bound nothing. @param entries provider's name or alias -> rules as they stand in JSON.
 */
export function parseRulesOfProviders(
  entries: ReadonlyArray<readonly [name: string, rules: unknown]>,
  catalog: Pick<ProviderCatalog, "find">,
): ParsedList<CallRulesByProvider> {
  const byName = new Map<string, readonly CallRule[]>();
  for (const [entry, written] of entries) {
    const provider = catalog.find(entry);
    if (provider === undefined) return { problem: "is no provider's name", entry };
    if (byName.has(provider.name)) return { problem: "is there twice", entry };
    const parsed = parseCallRules(written);
    if ("problem" in parsed) return { problem: parsed.problem, entry };
    byName.set(provider.name, parsed.rules);
  }
  const rules = Object.fromEntries(byName);
  const { length } = JSON.stringify(jsonFromCallRules(rules));
  if (length <= MAX_RULES_LENGTH) return { values: rules };
  return { problem: `must have at most ${MAX_RULES_LENGTH} characters as JSON`, entry: undefined };
}

/** For whom a call token is made, and what it lets through. */
export type CallTokenInput = Omit<NewCallToken, "now">;

/** How long a call token is valid unless told: one page visit, one run of a job. Seconds. */
export const DEFAULT_CALL_TOKEN_SECONDS = 15 * 60;

/** What is wrong with the input of a call token. */
interface CallTokenProblem {
  readonly field: "lifetime_seconds" | "rules";
  /** What follows the field in a sentence. */
  readonly problem: string;
}

/**
 * Makes a call token, once the audit trail has who did; undefined when there is no such application. The token is only
 * here. @returns what is wrong with the input where none was made.
 */
export async function issueCallToken(
  administration: Administration,
  input: CallTokenInput,
): Promise<ReturnType<typeof createCallToken> | CallTokenProblem | undefined> {
  const { store, sealer, now } = administration;
  const application = await store.applications.findByPublicKey(input.publicKey);
  if (application === undefined) return undefined;
  const maxSeconds = maxSecondsOf(application);
  if (input.lifetimeSeconds < 1 || input.lifetimeSeconds > maxSeconds) {
    return { field: "lifetime_seconds", problem: `must be from 1 to ${maxSeconds} for this application` };
  }
  const made = createCallToken({ ...input, now: now() }, openPrivateKeyHash(sealer, application));
  if (made.callToken.length > MAX_CALL_TOKEN_LENGTH) {
    return { field: "rules", problem: `must be shorter: a call token has at most ${MAX_CALL_TOKEN_LENGTH} characters` };
  }
  const resource = userResource(input.publicKey, input.userId);
  const entry = auditEntryFrom(administration, "ApplicationService.CreateCallToken", resource);
  await store.audit.add({ ...entry, outcome: "DONE" });
  return made;
}

/** What counts for a new application where the operator says nothing else. */
export const NEW_APPLICATION: Omit<ApplicationSettings, "name"> = {
  callerAuth: "PUBLIC_KEY",
  allowedOrigins: [],
  allowedAddresses: [],
  allowedRedirectUris: [],
  callsPerMinute: 0,
  connectionCallsPerMinute: 0,
  maxCallTokenSeconds: 0,
  accentColor: "",
  icon: new Uint8Array(0),
  state: "ACTIVE",
  callRules: {},
};

/** What an operator decides about a new application; a public key is made when none is given. */
export interface CreateApplicationInput extends ApplicationSettings {
  readonly publicKey: string | undefined;
}

/**
 * Stores a new application. The private key is only here: the store has its sealed hash. Rejects with
 * ApplicationExistsError.
 */
export async function createApplication(
  administration: Administration,
  { publicKey = createPublicKey(), ...input }: CreateApplicationInput,
): Promise<{ readonly application: Application; readonly privateKey: string }> {
  const { store, sealer, now } = administration;
  const privateKey = createPrivateKey();
  const id = randomUUID();
  const at = now();
  const privateKeyHash = sealPrivateKeyHash(sealer, id, privateKey);
  const made = { id, publicKey, privateKeyHash, captureUntil: 0, createdAt: at, updatedAt: at };
  const application: Application = { ...input, ...made };
  const resource = applicationResource(publicKey);
  const audit = auditEntryFrom(administration, "ApplicationService.CreateApplication", resource, fieldsOf(input));
  await store.applications.create(application, audit);
  return { application, privateKey };
}

/** Changes what the patch names. Undefined when there is no such application. Rejects with ChangedMeanwhileError. */
export async function updateApplication(
  administration: Administration,
  publicKey: string,
  patch: Omit<ApplicationPatch, "privateKeyHash">,
  isCurrent?: ChangeOptions<Application>["isCurrent"],
): Promise<Application | undefined> {
  const resource = applicationResource(publicKey);
  const audit = auditEntryFrom(administration, "ApplicationService.UpdateApplication", resource, fieldsOf(patch));
  const { store, now } = administration;
  return store.applications.update(publicKey, patch, now(), { audit, isCurrent });
}

/** Deletes an application with everything of it. False when there was none. Rejects with ChangedMeanwhileError. */
export function deleteApplication(
  administration: Administration,
  publicKey: string,
  isCurrent?: ChangeOptions<Application>["isCurrent"],
): Promise<boolean> {
  const resource = applicationResource(publicKey);
  const audit = auditEntryFrom(administration, "ApplicationService.DeleteApplication", resource);
  return administration.store.applications.delete(publicKey, { audit, isCurrent });
}

/** Replaces the private key of an application, and resolves to the new one. Undefined when there is no such one. */
export async function rotateApplicationKey(
  administration: Administration,
  publicKey: string,
): Promise<string | undefined> {
  const { store, sealer, now } = administration;
  const application = await store.applications.findByPublicKey(publicKey);
  if (application === undefined) return undefined;
  const privateKey = createPrivateKey();
  const privateKeyHash = sealPrivateKeyHash(sealer, application.id, privateKey);
  const resource = applicationResource(publicKey);
  const fields = fieldsOf({ privateKeyHash });
  const audit = auditEntryFrom(administration, "ApplicationService.RotateApplicationKey", resource, fields);
  // An application that was made anew under this key meanwhile has another id, to which the hash is not sealed.
  const isCurrent = ({ id }: { readonly id: string }) => id === application.id;
  const updated = await store.applications.update(publicKey, { privateKeyHash }, now(), { audit, isCurrent });
  return updated === undefined ? undefined : privateKey;
}

/** How long calls are captured unless told: long enough to make the call in question again. Minutes. */
export const DEFAULT_CAPTURE_MINUTES = 10;
/** What is captured may be personal: nobody should forget that it is on. Minutes. */
export const MAX_CAPTURE_MINUTES = 60;

/**
 * Captures headers and bodies of an application's calls for some minutes from now, or not any more for 0. Undefined when
 * there is no such application.
 */
export async function captureCalls(
  administration: Administration,
  publicKey: string,
  minutes: number,
): Promise<Application | undefined> {
  const [method, fields] = minutes === 0 ? (["Stop", []] as const) : (["Start", ["duration"]] as const);
  const resource = applicationResource(publicKey);
  const audit = auditEntryFrom(administration, `CallRecordService.${method}CallCapture`, resource, fields);
  const now = administration.now();
  const captureUntil = minutes === 0 ? 0 : now + minutes * 60_000;
  return administration.store.applications.update(publicKey, { captureUntil }, now, { audit });
}

import { randomUUID } from "node:crypto";
import {
  type Application,
  type ApplicationPatch,
  type ApplicationSettings,
  createPrivateKey,
  createPublicKey,
  openPrivateKeyHash,
  type Parsed,
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
import {
  type Administration,
  applicationResource,
  auditAction,
  auditEntryFrom,
  fieldsOf,
  userResource,
} from "./administration.js";

/** Most entries in one list of an application: each call may have to check all of them. */
const MAX_LIST_LENGTH = 1000;
/** Highest limit of calls per minute; anything higher amounts to no limit. */
export const MAX_CALLS_PER_MINUTE = 1_000_000;
const MAX_NAME_LENGTH = 200;

/** Parses an application's display name. */
export function parseDisplayName(text: string): Parsed {
  const name = text.trim();
  if (name !== "" && name.length <= MAX_NAME_LENGTH && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)) return { value: name };
  return { problem: `must be one line of 1 to ${MAX_NAME_LENGTH} characters` };
}

/** Parses the accent colour of an application; empty for none. */
export function parseAccentColor(text: string): Parsed {
  const color = text.trim().toLowerCase();
  return /^(?:#[0-9a-f]{6})?$/.test(color) ? { value: color } : { problem: "must be a colour such as #1a73e8" };
}

/** Parses a list, such as origins with `parseOrigin()`; drops duplicates. */
export function parseList(texts: readonly string[], parse: (text: string) => Parsed): Parsed<readonly string[]> {
  if (texts.length > MAX_LIST_LENGTH) return { problem: `must have at most ${MAX_LIST_LENGTH} entries` };
  const values = new Set<string>();
  for (const text of texts) {
    const parsed = parse(text);
    if ("problem" in parsed) return { problem: parsed.problem, entry: text };
    values.add(parsed.value);
  }
  return { value: [...values] };
}

/** Longest JSON of all rules of an application: each process keeps them in memory. */
const MAX_RULES_LENGTH = 64 * 1024;

/**
 * Parses an application's rules. Refuses a provider that is not in the catalogue: rules under a mistyped name would
 * restrict nothing.
 *
 * @param entries provider's name or alias -> rules as JSON.
 */
export function parseRulesOfProviders(
  entries: ReadonlyArray<readonly [name: string, rules: unknown]>,
  catalog: Pick<ProviderCatalog, "find">,
): Parsed<CallRulesByProvider> {
  const byName = new Map<string, readonly CallRule[]>();
  for (const [entry, written] of entries) {
    const provider = catalog.find(entry);
    if (provider === undefined) return { problem: "is not a known provider", entry };
    if (byName.has(provider.name)) return { problem: "is listed twice", entry };
    const parsed = parseCallRules(written);
    if ("problem" in parsed) return { problem: parsed.problem, entry };
    byName.set(provider.name, parsed.rules);
  }
  const rules = Object.fromEntries(byName);
  const { length } = JSON.stringify(jsonFromCallRules(rules));
  if (length <= MAX_RULES_LENGTH) return { value: rules };
  return { problem: `must have at most ${MAX_RULES_LENGTH} characters as JSON` };
}

/** The user of a call token, and what it allows. */
export type CallTokenInput = Omit<NewCallToken, "now">;

/** Default lifetime of a call token: one page visit, or one run of a job. */
export const DEFAULT_CALL_TOKEN_SECONDS = 15 * 60;

/** Why a call token cannot be created. */
interface CallTokenProblem {
  readonly field: "lifetime_seconds" | "rules";
  /** Follows the field's name in a sentence. */
  readonly problem: string;
}

/**
 * Creates a call token, and returns it only once the audit entry is written. The token itself is not stored.
 *
 * @returns the token, or what is wrong with the input; undefined when there is no such application.
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
  await auditAction(administration, "ApplicationService.CreateCallToken", resource);
  return made;
}

/** Default settings of a new application. */
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

/** Settings of a new application. Its public key is generated when undefined. */
export interface CreateApplicationInput extends ApplicationSettings {
  readonly publicKey: string | undefined;
}

/**
 * Stores a new application and resolves to it with its private key, of which only the sealed hash is stored. Rejects
 * with ApplicationExistsError.
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

/** Changes the fields in the patch. Undefined when there is no such application. Rejects with ChangedMeanwhileError. */
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

/**
 * Deletes an application with everything that belongs to it. False when there was none. Rejects with
 * ChangedMeanwhileError.
 */
export function deleteApplication(
  administration: Administration,
  publicKey: string,
  isCurrent?: ChangeOptions<Application>["isCurrent"],
): Promise<boolean> {
  const resource = applicationResource(publicKey);
  const audit = auditEntryFrom(administration, "ApplicationService.DeleteApplication", resource);
  return administration.store.applications.delete(publicKey, { audit, isCurrent });
}

/** Replaces an application's private key and resolves to the new one. Undefined when there is no such application. */
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
  // The hash is sealed to this id. If the application was deleted and created again meanwhile, its id differs.
  const isCurrent = ({ id }: { readonly id: string }) => id === application.id;
  const updated = await store.applications.update(publicKey, { privateKeyHash }, now(), { audit, isCurrent });
  return updated === undefined ? undefined : privateKey;
}

/** Default duration of a capture: long enough to repeat the call in question. */
export const DEFAULT_CAPTURE_MINUTES = 10;
/** Longest duration of a capture: it may contain personal data, so it must not be left on by mistake. */
export const MAX_CAPTURE_MINUTES = 60;

/**
 * Captures headers and bodies of an application's calls for some minutes from now; 0 stops the capture. Undefined when
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

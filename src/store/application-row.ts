import type { Application, ApplicationPatch } from "../applications/application.js";

/** A row of `applications`. */
export interface ApplicationRow {
  readonly id: string;
  readonly name: string;
  readonly public_key: string;
  readonly private_key_hash: Uint8Array;
  readonly caller_auth: Application["callerAuth"];
  readonly allowed_origins: string;
  readonly allowed_addresses: string;
  readonly allowed_redirect_uris: string;
  readonly calls_per_minute: number;
  readonly connection_calls_per_minute: number;
  readonly state: Application["state"];
  readonly capture_until: number;
  readonly created_at: number;
  readonly updated_at: number;
}

const NONE: readonly string[] = Object.freeze([]);

export function applicationFromRow(row: ApplicationRow): Application {
  return {
    id: row.id,
    name: row.name,
    publicKey: row.public_key,
    privateKeyHash: row.private_key_hash,
    callerAuth: row.caller_auth,
    allowedOrigins: listFrom(row.allowed_origins),
    allowedAddresses: listFrom(row.allowed_addresses),
    allowedRedirectUris: listFrom(row.allowed_redirect_uris),
    callsPerMinute: row.calls_per_minute,
    connectionCallsPerMinute: row.connection_calls_per_minute,
    state: row.state,
    captureUntil: row.capture_until,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export function rowFromApplication(application: Application): ApplicationRow {
  return {
    id: application.id,
    name: application.name,
    public_key: application.publicKey,
    private_key_hash: application.privateKeyHash,
    caller_auth: application.callerAuth,
    allowed_origins: JSON.stringify(application.allowedOrigins),
    allowed_addresses: JSON.stringify(application.allowedAddresses),
    allowed_redirect_uris: JSON.stringify(application.allowedRedirectUris),
    calls_per_minute: application.callsPerMinute,
    connection_calls_per_minute: application.connectionCallsPerMinute,
    state: application.state,
    capture_until: application.captureUntil,
    created_at: application.createdAt,
    updated_at: application.updatedAt,
  };
}

/** The columns of a patch; null for what stays. */
export function columnsFromPatch(patch: ApplicationPatch) {
  return {
    name: patch.name ?? null,
    private_key_hash: patch.privateKeyHash ?? null,
    caller_auth: patch.callerAuth ?? null,
    allowed_origins: patch.allowedOrigins ? JSON.stringify(patch.allowedOrigins) : null,
    allowed_addresses: patch.allowedAddresses ? JSON.stringify(patch.allowedAddresses) : null,
    allowed_redirect_uris: patch.allowedRedirectUris ? JSON.stringify(patch.allowedRedirectUris) : null,
    calls_per_minute: patch.callsPerMinute ?? null,
    connection_calls_per_minute: patch.connectionCallsPerMinute ?? null,
    state: patch.state ?? null,
    capture_until: patch.captureUntil ?? null,
  };
}

/** Most applications list nothing, and this runs for every call. */
function listFrom(json: string): readonly string[] {
  return json === "[]" ? NONE : (JSON.parse(json) as string[]);
}

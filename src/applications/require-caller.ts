import { RelayError } from "../model/errors.js";
import type { Application, ApplicationStore } from "./application.js";
import { type CallerProof, decideCaller } from "./caller.js";

/** What finding and judging a caller needs. */
export interface CallerOptions {
  readonly applications: Pick<ApplicationStore, "findByPublicKey">;
  /** Opens the sealed SHA-256 of an application's private key. */
  readonly openPrivateKeyHash: (application: Application) => Buffer;
}

/** Who calls, for which user, and how they prove it; all of it untrusted text. */
export interface Caller {
  readonly publicKey: string;
  readonly userId: string;
  readonly proof: CallerProof;
}

/** What the log line tells of the caller. */
export interface CallerTrace {
  rule: string | undefined;
}

/** The active application of a public key. Rejects with RelayError INVALID_PUBLIC_KEY. */
export async function requireApplication(
  { applications }: Pick<CallerOptions, "applications">,
  { publicKey }: Pick<Caller, "publicKey">,
): Promise<Application> {
  return requireActive(await applications.findByPublicKey(publicKey));
}

/** Judges what was found under a public key. Throws RelayError INVALID_PUBLIC_KEY. */
export function requireActive(application: Application | undefined): Application {
  if (application?.state === "ACTIVE") return application;
  throw new RelayError("INVALID_PUBLIC_KEY", "No active application has this public key. Check public_key.");
}

/** Throws RelayError CALLER_NOT_ALLOWED, which says what to send, unless the caller may act for this user. */
export function requireAllowedCaller(
  { openPrivateKeyHash }: Pick<CallerOptions, "openPrivateKeyHash">,
  application: Application,
  { userId, proof }: Pick<Caller, "userId" | "proof">,
  trace?: CallerTrace,
): void {
  const decision = decideCaller({ application, userId, proof, privateKeyHash: () => openPrivateKeyHash(application) });
  if (decision.result === "allow") return;
  if (trace !== undefined) trace.rule = decision.rule;
  throw new RelayError("CALLER_NOT_ALLOWED", decision.message);
}

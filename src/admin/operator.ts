import { createContextKey } from "@connectrpc/connect";

/** What an operator may do: see everything, or also change it. */
export type Role = "read-only" | "operator";

/** Who administers: the holder of one admin token. */
export interface Operator {
  /** The token's name in the token file; it stands in the audit trail. */
  readonly name: string;
  readonly role: Role;
}

/** Where the services of the administration port find who is calling; undefined only where nobody was put. */
export const operatorContextKey = createContextKey<Operator | undefined>(undefined);

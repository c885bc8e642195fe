import { createHash } from "node:crypto";
import { generateRandomState } from "oauth4webapi";
import { RelayError } from "../model/errors.js";
import { openSealed, type SealBinding, type Sealer } from "../sealing/seal.js";

/** Whose ticket it is. */
type TicketOwner = Pick<Ticket, "applicationId" | "userId">;

/** What each kind of ticket carries. */
interface TicketPayloads {
  readonly LINK: LinkPayload;
  readonly SESSION: SessionPayload;
  readonly STATE: StatePayload;
}

/** What a browser may do with a connect page. */
export interface SessionPayload {
  readonly publicKey: string;
  /** Names of the providers that may be connected; empty means all of the application's. */
  readonly providers: readonly string[];
  /** Where the browser goes afterwards; one of the application's. */
  readonly redirectUri: string | undefined;
  /** Origin of the window that opened this one, which receives the result; one of the application's. */
  readonly openerOrigin: string | undefined;
  /** Scope to request instead of the OAuth client's. */
  readonly scope: string | undefined;
  /** Further parameters of the authorization request; undefined for none. */
  readonly authorizationParameters?: Readonly<Record<string, string>> | undefined;
  /** Whether the browser comes back to a connect page first; otherwise the session connects one provider. */
  readonly isPage: boolean;
  /** Values that the link has fixed for its one provider; undefined when no link began the session. */
  readonly originParameters?: Readonly<Record<string, string>> | undefined;
}

/** What the browser that opens a link may do. */
type LinkPayload = SessionPayload & Required<Pick<SessionPayload, "originParameters">>;

/** What the callback must know about its authorization request. */
export interface StatePayload {
  readonly publicKey: string;
  readonly providerName: string;
  /** RFC 7636 section 4.1; undefined without PKCE. */
  readonly codeVerifier: string | undefined;
  readonly originParameters: Readonly<Record<string, string>>;
  readonly redirectUri: string | undefined;
  readonly openerOrigin: string | undefined;
  /** Secret of the page's session that the browser came from. */
  readonly session: string | undefined;
  /** The temporary credentials of this attempt (RFC 5849 section 2.1); undefined with OAuth 2.0. */
  readonly temporary?: { readonly token: string; readonly secret: string } | undefined;
}

/** A ticket that was found, with its opened payload. */
export type OpenTicket<Kind extends TicketKind> = TicketOwner & { readonly payload: TicketPayloads[Kind] };

/** Issues and redeems short-lived secrets of browsers. Rejects with RelayError STORE_UNAVAILABLE. */
export type Tickets = ReturnType<typeof createTickets>;

/** A link travels through the application's page or mail; a page is looked at; a consent is read. Milliseconds. */
const LIFETIME_MS = { LINK: 15 * 60_000, SESSION: 30 * 60_000, STATE: 10 * 60_000 } as const;
/**
 * Most tickets of one kind and application at once: enough for 27 people a second. Strangers can make sessions and
 * states, so of these a new one replaces the oldest: refusing it would let them close the application's pages.
 */
const MOST = 50_000;
const SECRET = /^[A-Za-z0-9_-]{43}$/;
const DOES_NOT_OPEN = "The stored data of this connection attempt cannot be opened. Start again.";

/** What tickets need. */
export interface TicketsOptions {
  readonly store: TicketStore;
  readonly sealer: Sealer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Creates {@link Tickets} over a store. A secret is 256 random bits, and the store keeps only its hash. */
export function createTickets({ store, sealer, now }: TicketsOptions) {
  const open = <Kind extends TicketKind>(ticket: Ticket | undefined): OpenTicket<Kind> | undefined => {
    if (ticket === undefined) return undefined;
    const text = openSealed(sealer, ticket.payload, bindingOf(ticket), DOES_NOT_OPEN).toString();
    return { applicationId: ticket.applicationId, userId: ticket.userId, payload: JSON.parse(text) };
  };
  return {
    /**
     * Resolves to the secret, 43 characters of base64url. Rejects with OVERLOADED when the application has too many links,
     * and with CALLER_NOT_ALLOWED when `link` is gone.
     *
     * @param browser cookie of the browser that alone may use it; undefined for a link.
     * @param more `secret`: one of `createSecret()`, where it had to be known before the payload; `link`: the link that
     *   is used up with it.
     */
    async issue<Kind extends TicketKind>(
      kind: Kind,
      owner: TicketOwner,
      browser: string | undefined,
      payload: TicketPayloads[Kind],
      {
        secret = createSecret(),
        link,
      }: { readonly secret?: string | undefined; readonly link?: string | undefined } = {},
    ) {
      const expiresAt = now() + LIFETIME_MS[kind];
      const sealed = sealer.seal(JSON.stringify(payload), bindingOf(owner));
      const ticket = { ...owner, ...keyOf(kind, secret, browser ?? ""), payload: sealed, expiresAt };
      const linkKey = link === undefined ? undefined : keyOf("LINK", link, "");
      if (await store.add(ticket, MOST, now(), linkKey)) return { secret, expiresAt };
      if (link !== undefined) throw linkGone();
      throw new RelayError(
        "OVERLOADED",
        "The application has made too many connect links. Try again in a few minutes.",
      );
    },
    /** Finds a ticket; undefined when it is unknown, has expired, or is another browser's. */
    find: async <Kind extends TicketKind>(kind: Kind, secret: string, browser: string) =>
      SECRET.test(secret) ? open<Kind>(await store.find(keyOf(kind, secret, browser), now())) : undefined,
    /** Like `find`, but the ticket is used up. */
    take: async <Kind extends TicketKind>(kind: Kind, secret: string, browser: string) =>
      SECRET.test(secret) ? open<Kind>(await store.take(keyOf(kind, secret, browser), now())) : undefined,
  };
}

/** Error for a link that is unknown, was opened before or has expired. */
export function linkGone(): RelayError {
  return new RelayError("CALLER_NOT_ALLOWED", "This link has already been used or has expired. Ask for a new one.");
}

/** Creates the secret of a ticket that is issued later. */
export function createSecret(): string {
  return generateRandomState();
}

function keyOf(kind: TicketKind, secret: string, browser: string) {
  return { id: hashOf(secret), kind, browser: kind === "LINK" ? "" : hashOf(browser) };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function bindingOf({ applicationId, userId }: TicketOwner): SealBinding {
  return { table: "tickets", column: "payload", applicationId, userId, providerName: "" };
}

/**
 * What a secret in a browser stands for: `LINK`, a connect link that was not opened yet; `SESSION`, an open connect
 * page; `STATE`, an authorization request in progress (RFC 6749 section 4.1.1).
 */
export type TicketKind = "LINK" | "SESSION" | "STATE";

/** A short-lived secret as the store keeps it: by its hash, bound to application, user and browser. */
export interface Ticket {
  /** Hex SHA-256 of the secret. */
  readonly id: string;
  readonly kind: TicketKind;
  /** Hex SHA-256 of the browser's cookie; empty for a link, which any browser may open. */
  readonly browser: string;
  readonly applicationId: string;
  readonly userId: string;
  /** Sealed JSON. */
  readonly payload: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Identifies a ticket; all three must match. */
export type TicketKey = Pick<Ticket, "id" | "kind" | "browser">;

/** Where tickets are kept. Every method rejects with RelayError STORE_UNAVAILABLE when the store cannot be used. */
export interface TicketStore {
  /**
   * Adds a ticket, and removes some that have expired. When the application already has `most` unexpired tickets of
   * this kind, the oldest is removed; but for a link, resolves to false, with nothing added.
   *
   * @param link is deleted in the same transaction; resolves to false, with nothing added, when it is gone.
   */
  add(ticket: Ticket, most: number, now: number, link?: TicketKey): Promise<boolean>;
  /** The ticket, unless it has expired. */
  find(key: TicketKey, now: number): Promise<Ticket | undefined>;
  /** Deletes and returns the ticket, unless it has expired, so that nobody else gets it. */
  take(key: TicketKey, now: number): Promise<Ticket | undefined>;
}

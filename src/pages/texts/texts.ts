import type { Html } from "../html.js";

/** Visible text, and its continuation for screen readers only: `Connect`, ` GitHub`. */
type Spoken = readonly [seen: string, unseen: string];

/** A message: one sentence without its full stop, and what it means or what to do; that may be empty. */
export interface Told {
  readonly title: string;
  readonly advice: string;
}

/** All texts of the pages. Names of providers and applications are inserted unchanged. */
export interface Texts {
  /** RFC 5646. */
  readonly language: string;
  /** The connect page. */
  readonly connectTo: (application: string) => string;
  readonly nothingToConnect: (application: string) => string;
  readonly backTo: (application: string) => string;
  readonly mayUse: (application: string) => string;
  /** For which user the accounts are connected. */
  readonly forUser: (user: Html, application: string) => Html;
  readonly find: string;
  readonly findProvider: string;
  readonly noneFound: string;
  readonly yourAccounts: string;
  readonly connect: (provider: string) => Spoken;
  readonly connectAgain: (provider: string) => Spoken;
  readonly disconnect: (provider: string) => Spoken;
  readonly connected: string;
  readonly notConnected: string;
  readonly ended: string;
  readonly endedConnectAgain: string;
  /** Outcomes. */
  readonly isConnected: (provider: string) => string;
  readonly isNotConnected: (provider: string) => string;
  readonly isDisconnected: (provider: string) => string;
  readonly isDisconnectedHere: (provider: string) => Told;
  readonly closeWindow: string;
  readonly why: Readonly<
    Record<"denied" | "late" | "unreachable" | "providerFails" | "scope" | "notSetUp" | "other", string>
  >;
  readonly errorCode: (code: string) => string;
  /** The confirmation page, shown before the provider's own. */
  readonly confirm: (provider: string, application: string) => string;
  readonly confirmUser: (user: Html, application: string, provider: string) => Html;
  readonly confirmOnlyIf: (application: string) => string;
  readonly asksFor: (application: string) => string;
  readonly asksAtProvider: (provider: string) => string;
  readonly continueTo: (name: string) => string;
  readonly onTheWayTo: (name: string) => string;
  /** The form for a connection's values. */
  readonly connectProvider: (provider: string) => string;
  readonly nothingMore: string;
  readonly whichAddress: (provider: string) => string;
  readonly asksForThis: (provider: string) => string;
  readonly isKept: (provider: string) => string;
  readonly withThis: (application: Html, provider: string) => Html;
  readonly enterOnlyIf: (application: string) => string;
  readonly connectButton: string;
  readonly optional: string;
  readonly noSuchAddress: string;
  readonly notAnAddress: (provider: string) => Told;
  readonly cannotBeRight: (label: string) => string;
  readonly wholeHost: (example: Html) => Html;
  readonly partOfHost: (part: Html, address: Html) => Html;
  /** Pages with only a message. */
  readonly notNow: Told;
  readonly wrongLink: Told;
  readonly notSetUp: Told;
  readonly home: Told;
}

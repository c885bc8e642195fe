import { html } from "../html.js";
import type { Texts } from "./texts.js";

/** English. */
export const en: Texts = {
  language: "en",
  connectTo: (application) => `Connect accounts to ${application}`,
  nothingToConnect: (application) => `${application} has nothing to connect yet.`,
  backTo: (application) => `Back to ${application}`,
  mayUse: (application) =>
    `${application} can use the accounts that you connect here. Before an account is connected, its provider asks you to sign in and to agree. You can disconnect it at any time.`,
  forUser: (user, application) => html`Accounts are connected for ${user} at ${application}.`,
  find: "Find",
  findProvider: "Find a provider",
  noneFound: "No provider's name contains this.",
  yourAccounts: "Your accounts",
  connect: (provider) => ["Connect", ` ${provider}`],
  connectAgain: (provider) => ["Connect again", ` to ${provider}`],
  disconnect: (provider) => ["Disconnect", ` ${provider}`],
  connected: "Connected",
  notConnected: "Not connected",
  ended: "No longer connected",
  endedConnectAgain: "No longer connected: connect again to keep using it",
  isConnected: (provider) => `${provider} is connected`,
  isNotConnected: (provider) => `${provider} is not connected`,
  isDisconnected: (provider) => `${provider} is disconnected`,
  isDisconnectedHere: (provider) => ({
    title: `${provider} is disconnected here`,
    advice: `${provider} may still list the access that you gave. To end it there too, remove it in your ${provider} account.`,
  }),
  closeWindow: "You can close this window.",
  why: {
    denied: "You did not allow it, or your organisation does not let you. If that was a mistake, try again.",
    late: "It took too long, or the provider withdrew its approval. Try again.",
    unreachable: "The provider could not be reached. Try again in a minute.",
    providerFails: "The provider has a problem. Try again in a minute.",
    scope: "The application asks for something that the provider does not offer. Tell the people who run it.",
    notSetUp: "The application is not set up correctly at the provider. Tell the people who run it.",
    other: "The provider answered with an error. Try again.",
  },
  errorCode: (code) => `Error: ${code}`,
  confirm: (provider, application) => `Connect ${provider} to ${application}?`,
  confirmUser: (user, application, provider) =>
    html`${application} wants to use your ${provider} account for its user ${user}.`,
  confirmOnlyIf: (application) =>
    `Continue only if you came here from ${application} and this is you. If somebody sent you here, close this window: that person would be able to use your account.`,
  asksFor: (application) => `${application} asks for:`,
  asksAtProvider: (provider) => `${provider} shows what it asks for before you agree.`,
  continueTo: (name) => `Continue to ${name}`,
  onTheWayTo: (name) => `Continuing to ${name}`,
  connectProvider: (provider) => `Connect ${provider}`,
  nothingMore: "Nothing more is needed to connect it.",
  whichAddress: (provider) => `Your ${provider} account has its own address. What is it?`,
  asksForThis: (provider) => `${provider} asks for this to connect your account.`,
  isKept: (provider) => `It is stored encrypted and sent only to ${provider}.`,
  withThis: (application, provider) => html`With this, ${application} can use your ${provider} account.`,
  enterOnlyIf: (application) => `Enter it only if you came here from ${application}.`,
  connectButton: "Connect",
  optional: "(optional)",
  noSuchAddress: "No such address",
  notAnAddress: (provider) => ({
    title: `This is not an address of ${provider}`,
    advice: `Open ${provider} in another window, copy its address from the address bar, and paste it here.`,
  }),
  cannotBeRight: (label) => `${label} is not valid`,
  wholeHost: (example) => html`Such as ${example}. You may paste the whole address.`,
  partOfHost: (part, address) =>
    html`The part of your account's address in place of ${part} in ${address}. You may paste the whole address.`,
  notNow: {
    title: "This does not work right now",
    advice: "Nothing is wrong with your account. Wait a minute, then try again.",
  },
  wrongLink: {
    title: "This link does not work",
    advice: "Go back to the application that sent you here, and start again from there.",
  },
  notSetUp: {
    title: "This is not set up yet",
    advice:
      "You did nothing wrong. Tell the people who run the application that sent you here, and show them this page.",
  },
  home: {
    title: "A provider call relay runs here",
    advice:
      "It calls other services for the users of applications, and has no pages to browse. To connect or disconnect an account, go to the application that uses it.",
  },
};

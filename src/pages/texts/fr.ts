import { html } from "../html.js";
import type { Texts } from "./texts.js";

/** French. A no-break space precedes high punctuation. */
export const fr: Texts = {
  language: "fr",
  connectTo: (application) => `Connecter des comptes à ${application}`,
  nothingToConnect: (application) => `${application} n’a encore aucun compte à connecter.`,
  backTo: (application) => `Retour à ${application}`,
  mayUse: (application) =>
    `${application} peut utiliser les comptes que vous connectez ici. Avant qu’un compte soit connecté, son fournisseur vous demande de vous identifier et de donner votre accord. Vous pouvez le déconnecter à tout moment.`,
  forUser: (user, application) => html`Les comptes sont connectés pour ${user} chez ${application}.`,
  find: "Rechercher",
  findProvider: "Rechercher un fournisseur",
  noneFound: "Aucun fournisseur ne porte ce nom.",
  yourAccounts: "Vos comptes",
  connect: (provider) => ["Connecter", ` ${provider}`],
  connectAgain: (provider) => ["Reconnecter", ` ${provider}`],
  disconnect: (provider) => ["Déconnecter", ` ${provider}`],
  connected: "Connecté",
  notConnected: "Non connecté",
  ended: "N’est plus connecté",
  endedConnectAgain: "N’est plus connecté : reconnectez-le pour continuer à l’utiliser",
  isConnected: (provider) => `${provider} est connecté`,
  isNotConnected: (provider) => `${provider} n’est pas connecté`,
  isDisconnected: (provider) => `${provider} est déconnecté`,
  isDisconnectedHere: (provider) => ({
    title: `${provider} est déconnecté ici`,
    advice: `L’accès que vous avez accordé peut encore figurer chez ${provider}. Pour y mettre fin là aussi, supprimez-le dans votre compte ${provider}.`,
  }),
  closeWindow: "Vous pouvez fermer cette fenêtre.",
  why: {
    denied:
      "Vous n’avez pas donné votre accord, ou votre organisation ne le permet pas. Si c’était une erreur, réessayez.",
    late: "Cela a pris trop de temps, ou le fournisseur est revenu sur son accord. Réessayez.",
    unreachable: "Le fournisseur est injoignable. Réessayez dans une minute.",
    providerFails: "Le fournisseur rencontre un problème. Réessayez dans une minute.",
    scope: "L’application demande quelque chose que le fournisseur ne propose pas. Prévenez ses responsables.",
    notSetUp: "L’application n’est pas correctement configurée chez le fournisseur. Prévenez ses responsables.",
    other: "Le fournisseur a répondu par une erreur. Réessayez.",
  },
  errorCode: (code) => `Erreur : ${code}`,
  confirm: (provider, application) => `Connecter ${provider} à ${application} ?`,
  confirmUser: (user, application, provider) =>
    html`${application} souhaite utiliser votre compte ${provider} pour ${user}.`,
  confirmOnlyIf: (application) =>
    `Ne continuez que si vous venez de ${application} et s’il s’agit bien de vous. Si quelqu’un vous a envoyé ce lien, fermez cette fenêtre : cette personne pourrait utiliser votre compte.`,
  asksFor: (application) => `${application} demande :`,
  asksAtProvider: (provider) => `${provider} vous indique ce qui est demandé avant que vous donniez votre accord.`,
  continueTo: (name) => `Continuer vers ${name}`,
  onTheWayTo: (name) => `Redirection vers ${name}`,
  connectProvider: (provider) => `Connecter ${provider}`,
  nothingMore: "Aucune autre information n’est nécessaire pour le connecter.",
  whichAddress: (provider) => `Votre compte ${provider} a sa propre adresse. Quelle est-elle ?`,
  asksForThis: (provider) => `${provider} demande ces informations pour connecter votre compte.`,
  isKept: (provider) => `Elles sont conservées chiffrées et envoyées uniquement à ${provider}.`,
  withThis: (application, provider) => html`${application} pourra ainsi utiliser votre compte ${provider}.`,
  enterOnlyIf: (application) => `Ne les saisissez que si vous venez de ${application}.`,
  connectButton: "Connecter",
  optional: "(facultatif)",
  noSuchAddress: "Adresse inconnue",
  notAnAddress: (provider) => ({
    title: `Ce n’est pas une adresse de ${provider}`,
    advice: `Ouvrez ${provider} dans une autre fenêtre, copiez son adresse depuis la barre d’adresse et collez-la ici.`,
  }),
  cannotBeRight: (label) => `${label} : valeur incorrecte`,
  wholeHost: (example) => html`Par exemple ${example}. Vous pouvez coller l’adresse entière.`,
  partOfHost: (part, address) =>
    html`Ce qui figure à la place de ${part} dans ${address}. Vous pouvez coller l’adresse entière.`,
  notNow: {
    title: "Cela ne fonctionne pas pour le moment",
    advice: "Votre compte n’est pas en cause. Attendez une minute, puis réessayez.",
  },
  wrongLink: {
    title: "Ce lien ne fonctionne pas",
    advice: "Retournez à l’application d’où vous venez, et recommencez à partir de là.",
  },
  notSetUp: {
    title: "Ce n’est pas encore configuré",
    advice:
      "Vous n’avez rien fait de mal. Prévenez les responsables de l’application d’où vous venez, et montrez-leur cette page.",
  },
  home: {
    title: "Un relais d’appels aux fournisseurs fonctionne ici",
    advice:
      "Il appelle d’autres services pour les utilisateurs d’applications ; il n’y a rien à voir ici. Pour connecter ou déconnecter un compte, allez dans l’application qui l’utilise.",
  },
};

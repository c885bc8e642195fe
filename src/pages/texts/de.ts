import { html } from "../html.js";
import type { Texts } from "./texts.js";

/** German, using the formal address (Sie). */
export const de: Texts = {
  language: "de",
  connectTo: (application) => `Konten mit ${application} verbinden`,
  nothingToConnect: (application) => `Für ${application} gibt es noch nichts zu verbinden.`,
  backTo: (application) => `Zurück zu ${application}`,
  mayUse: (application) =>
    `${application} kann die Konten nutzen, die Sie hier verbinden. Bevor ein Konto verbunden wird, melden Sie sich beim Anbieter an und stimmen dort zu. Sie können die Verbindung jederzeit trennen.`,
  forUser: (user, application) => html`Die Konten werden für ${user} bei ${application} verbunden.`,
  find: "Suchen",
  findProvider: "Anbieter suchen",
  noneFound: "Kein Anbieter hat einen solchen Namen.",
  yourAccounts: "Ihre Konten",
  connect: (provider) => ["Verbinden", `: ${provider}`],
  connectAgain: (provider) => ["Erneut verbinden", `: ${provider}`],
  disconnect: (provider) => ["Trennen", `: ${provider}`],
  connected: "Verbunden",
  notConnected: "Nicht verbunden",
  ended: "Nicht mehr verbunden",
  endedConnectAgain: "Nicht mehr verbunden: Verbinden Sie das Konto erneut, um es weiter zu nutzen",
  isConnected: (provider) => `${provider} ist verbunden`,
  isNotConnected: (provider) => `${provider} ist nicht verbunden`,
  isDisconnected: (provider) => `Die Verbindung mit ${provider} ist getrennt`,
  isDisconnectedHere: (provider) => ({
    title: `Die Verbindung mit ${provider} ist hier getrennt`,
    advice: `Bei ${provider} kann der erteilte Zugriff noch aufgeführt sein. Um ihn auch dort zu beenden, entfernen Sie ihn in Ihrem ${provider}-Konto.`,
  }),
  closeWindow: "Sie können dieses Fenster schließen.",
  why: {
    denied:
      "Sie haben nicht zugestimmt, oder Ihre Organisation lässt es nicht zu. Falls das ein Versehen war, versuchen Sie es noch einmal.",
    late: "Es hat zu lange gedauert, oder der Anbieter hat die Zustimmung zurückgenommen. Versuchen Sie es noch einmal.",
    unreachable: "Der Anbieter war nicht erreichbar. Versuchen Sie es in einer Minute noch einmal.",
    providerFails: "Beim Anbieter gibt es eine Störung. Versuchen Sie es in einer Minute noch einmal.",
    scope:
      "Die Anwendung verlangt etwas, das der Anbieter nicht anbietet. Wenden Sie sich an die Betreiber der Anwendung.",
    notSetUp:
      "Die Anwendung ist beim Anbieter nicht richtig eingerichtet. Wenden Sie sich an die Betreiber der Anwendung.",
    other: "Der Anbieter hat mit einem Fehler geantwortet. Versuchen Sie es noch einmal.",
  },
  errorCode: (code) => `Fehler: ${code}`,
  confirm: (provider, application) => `${provider} mit ${application} verbinden?`,
  confirmUser: (user, application, provider) => html`${application} möchte Ihr ${provider}-Konto für ${user} nutzen.`,
  confirmOnlyIf: (application) =>
    `Fahren Sie nur fort, wenn Sie von ${application} hierher gekommen sind und das Ihr Benutzername ist. Hat Ihnen jemand diesen Link geschickt, schließen Sie das Fenster: Diese Person könnte sonst Ihr Konto nutzen.`,
  asksFor: (application) => `${application} bittet um:`,
  asksAtProvider: (provider) => `${provider} zeigt Ihnen vor der Zustimmung, worum es geht.`,
  continueTo: (name) => `Weiter zu ${name}`,
  onTheWayTo: (name) => `Sie werden zu ${name} weitergeleitet`,
  connectProvider: (provider) => `${provider} verbinden`,
  nothingMore: "Für die Verbindung sind keine weiteren Angaben nötig.",
  whichAddress: (provider) => `Ihr ${provider}-Konto hat eine eigene Adresse. Wie lautet sie?`,
  asksForThis: (provider) => `${provider} braucht diese Angaben, um Ihr Konto zu verbinden.`,
  isKept: (provider) => `Die Angaben werden verschlüsselt gespeichert und nur an ${provider} gesendet.`,
  withThis: (application, provider) => html`Damit kann ${application} Ihr ${provider}-Konto nutzen.`,
  enterOnlyIf: (application) => `Geben Sie sie nur ein, wenn Sie von ${application} hierher gekommen sind.`,
  connectButton: "Verbinden",
  optional: "(freiwillig)",
  noSuchAddress: "Diese Adresse gibt es nicht",
  notAnAddress: (provider) => ({
    title: `Das ist keine Adresse von ${provider}`,
    advice: `Öffnen Sie ${provider} in einem anderen Fenster, kopieren Sie die Adresse aus der Adressleiste und fügen Sie sie hier ein.`,
  }),
  cannotBeRight: (label) => `${label} kann nicht stimmen`,
  wholeHost: (example) => html`Zum Beispiel ${example}. Sie können die ganze Adresse einfügen.`,
  partOfHost: (part, address) =>
    html`Das, was in ${address} an der Stelle von ${part} steht. Sie können die ganze Adresse einfügen.`,
  notNow: {
    title: "Das funktioniert im Moment nicht",
    advice: "Mit Ihrem Konto ist alles in Ordnung. Warten Sie eine Minute, und versuchen Sie es dann noch einmal.",
  },
  wrongLink: {
    title: "Dieser Link funktioniert nicht",
    advice: "Gehen Sie zurück zu der Anwendung, von der Sie kommen, und beginnen Sie dort von vorn.",
  },
  notSetUp: {
    title: "Das ist noch nicht eingerichtet",
    advice:
      "Sie haben nichts falsch gemacht. Wenden Sie sich an die Betreiber der Anwendung, von der Sie kommen, und zeigen Sie ihnen diese Seite.",
  },
  home: {
    title: "Hier läuft ein Provider Call Relay",
    advice:
      "Es ruft für die Benutzer von Anwendungen andere Dienste auf; zu sehen gibt es hier nichts. Um ein Konto zu verbinden oder zu trennen, gehen Sie zu der Anwendung, die es nutzt.",
  },
};

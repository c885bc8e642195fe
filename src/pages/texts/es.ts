import { html } from "../html.js";
import type { Texts } from "./texts.js";

/** Spanish, using the informal address (tú), as consumer software does in Spain and in most of Latin America. */
export const es: Texts = {
  language: "es",
  connectTo: (application) => `Conectar cuentas con ${application}`,
  nothingToConnect: (application) => `${application} todavía no tiene nada que conectar.`,
  backTo: (application) => `Volver a ${application}`,
  mayUse: (application) =>
    `${application} puede usar las cuentas que conectes aquí. Antes de conectar una cuenta, su proveedor te pide que inicies sesión y que des tu consentimiento. Puedes desconectarla en cualquier momento.`,
  forUser: (user, application) => html`Las cuentas se conectan para ${user} en ${application}.`,
  find: "Buscar",
  findProvider: "Buscar un proveedor",
  noneFound: "Ningún proveedor tiene ese nombre.",
  yourAccounts: "Tus cuentas",
  connect: (provider) => ["Conectar", ` ${provider}`],
  connectAgain: (provider) => ["Volver a conectar", ` ${provider}`],
  disconnect: (provider) => ["Desconectar", ` ${provider}`],
  connected: "Conectada",
  notConnected: "Sin conectar",
  ended: "Ya no está conectada",
  endedConnectAgain: "Ya no está conectada: vuelve a conectarla para seguir usándola",
  isConnected: (provider) => `${provider} está conectado`,
  isNotConnected: (provider) => `${provider} no está conectado`,
  isDisconnected: (provider) => `${provider} está desconectado`,
  isDisconnectedHere: (provider) => ({
    title: `${provider} está desconectado aquí`,
    advice: `Es posible que ${provider} siga mostrando el acceso que diste. Para anularlo también allí, elimínalo en tu cuenta de ${provider}.`,
  }),
  closeWindow: "Puedes cerrar esta ventana.",
  why: {
    denied: "No diste tu consentimiento, o tu organización no lo permite. Si fue un error, inténtalo de nuevo.",
    late: "Se tardó demasiado, o el proveedor retiró el permiso. Inténtalo de nuevo.",
    unreachable: "No se pudo contactar con el proveedor. Inténtalo de nuevo en un minuto.",
    providerFails: "El proveedor tiene un problema. Inténtalo de nuevo en un minuto.",
    scope: "La aplicación pide algo que el proveedor no ofrece. Avisa a sus responsables.",
    notSetUp: "La aplicación no está bien configurada en el proveedor. Avisa a sus responsables.",
    other: "El proveedor respondió con un error. Inténtalo de nuevo.",
  },
  errorCode: (code) => `Error: ${code}`,
  confirm: (provider, application) => `¿Conectar ${provider} con ${application}?`,
  confirmUser: (user, application, provider) => html`${application} quiere usar tu cuenta de ${provider} para ${user}.`,
  confirmOnlyIf: (application) =>
    `Continúa solo si has llegado aquí desde ${application} y se trata de ti. Si alguien te ha enviado este enlace, cierra esta ventana: esa persona podría usar tu cuenta.`,
  asksFor: (application) => `${application} pide:`,
  asksAtProvider: (provider) => `${provider} te muestra lo que se pide antes de que des tu consentimiento.`,
  continueTo: (name) => `Continuar a ${name}`,
  onTheWayTo: (name) => `Redirigiendo a ${name}`,
  connectProvider: (provider) => `Conectar ${provider}`,
  nothingMore: "No hace falta ningún otro dato para conectarla.",
  whichAddress: (provider) => `Tu cuenta de ${provider} tiene una dirección propia. ¿Cuál es?`,
  asksForThis: (provider) => `${provider} pide estos datos para conectar tu cuenta.`,
  isKept: (provider) => `Se guardan cifrados y solo se envían a ${provider}.`,
  withThis: (application, provider) => html`Con ellos, ${application} puede usar tu cuenta de ${provider}.`,
  enterOnlyIf: (application) => `Introdúcelos solo si has llegado aquí desde ${application}.`,
  connectButton: "Conectar",
  optional: "(opcional)",
  noSuchAddress: "Esa dirección no existe",
  notAnAddress: (provider) => ({
    title: `Esta no es una dirección de ${provider}`,
    advice: `Abre ${provider} en otra ventana, copia su dirección de la barra de direcciones y pégala aquí.`,
  }),
  cannotBeRight: (label) => `${label}: el valor no puede ser correcto`,
  wholeHost: (example) => html`Por ejemplo, ${example}. Puedes pegar la dirección completa.`,
  partOfHost: (part, address) =>
    html`Lo que aparece en lugar de ${part} en ${address}. Puedes pegar la dirección completa.`,
  notNow: {
    title: "Esto no funciona en este momento",
    advice: "A tu cuenta no le pasa nada. Espera un minuto e inténtalo de nuevo.",
  },
  wrongLink: {
    title: "Este enlace no funciona",
    advice: "Vuelve a la aplicación desde la que llegaste y empieza de nuevo desde allí.",
  },
  notSetUp: {
    title: "Esto aún no está configurado",
    advice:
      "No has hecho nada mal. Avisa a los responsables de la aplicación desde la que llegaste y enséñales esta página.",
  },
  home: {
    title: "Aquí funciona un relé de llamadas a proveedores",
    advice:
      "Llama a otros servicios en nombre de los usuarios de aplicaciones y no hay nada que ver aquí. Para conectar o desconectar una cuenta, ve a la aplicación que la usa.",
  },
};

import { html } from "../html.js";
import type { Texts } from "./texts.js";

/** Portuguese, in words used in Brazil and understood in Portugal. */
export const pt: Texts = {
  language: "pt",
  connectTo: (application) => `Conectar contas a ${application}`,
  nothingToConnect: (application) => `Ainda não há nada para conectar a ${application}.`,
  backTo: (application) => `Voltar para ${application}`,
  mayUse: (application) =>
    `${application} pode usar as contas que você conectar aqui. Antes de uma conta ser conectada, o provedor pede que você entre nela e dê o seu consentimento. Você pode desconectá-la a qualquer momento.`,
  forUser: (user, application) => html`As contas são conectadas para ${user} em ${application}.`,
  find: "Buscar",
  findProvider: "Buscar um provedor",
  noneFound: "Nenhum provedor tem esse nome.",
  yourAccounts: "Suas contas",
  connect: (provider) => ["Conectar", ` ${provider}`],
  connectAgain: (provider) => ["Conectar novamente", `: ${provider}`],
  disconnect: (provider) => ["Desconectar", ` ${provider}`],
  connected: "Conectada",
  notConnected: "Não conectada",
  ended: "Não está mais conectada",
  endedConnectAgain: "Não está mais conectada: conecte-a novamente para continuar a usá-la",
  isConnected: (provider) => `${provider}: conta conectada`,
  isNotConnected: (provider) => `${provider}: conta não conectada`,
  isDisconnected: (provider) => `${provider}: conta desconectada`,
  isDisconnectedHere: (provider) => ({
    title: `${provider}: conta desconectada aqui`,
    advice: `É possível que ${provider} ainda mostre o acesso que você concedeu. Para encerrá-lo também lá, remova-o na sua conta ${provider}.`,
  }),
  closeWindow: "Você pode fechar esta janela.",
  why: {
    denied: "Você não deu o seu consentimento, ou a sua organização não permite. Se foi um engano, tente novamente.",
    late: "Demorou demais, ou o provedor retirou a permissão. Tente novamente.",
    unreachable: "Não foi possível contatar o provedor. Tente novamente em um minuto.",
    providerFails: "O provedor está com um problema. Tente novamente em um minuto.",
    scope: "O aplicativo pede algo que o provedor não oferece. Avise os responsáveis pelo aplicativo.",
    notSetUp: "O aplicativo não está configurado corretamente no provedor. Avise os responsáveis pelo aplicativo.",
    other: "O provedor respondeu com um erro. Tente novamente.",
  },
  errorCode: (code) => `Erro: ${code}`,
  confirm: (provider, application) => `Conectar ${provider} a ${application}?`,
  confirmUser: (user, application, provider) => html`${application} quer usar a sua conta ${provider} para ${user}.`,
  confirmOnlyIf: (application) =>
    `Continue somente se você veio de ${application} e se trata de você. Se alguém lhe enviou este link, feche esta janela: essa pessoa poderia usar a sua conta.`,
  asksFor: (application) => `${application} pede:`,
  asksAtProvider: (provider) => `${provider} mostra o que é pedido antes de você dar o seu consentimento.`,
  continueTo: (name) => `Continuar para ${name}`,
  onTheWayTo: (name) => `A caminho de ${name}`,
  connectProvider: (provider) => `Conectar ${provider}`,
  nothingMore: "Não é preciso informar mais nada para conectá-la.",
  whichAddress: (provider) => `A sua conta ${provider} tem um endereço próprio. Qual é?`,
  asksForThis: (provider) => `${provider} pede estes dados para conectar a sua conta.`,
  isKept: (provider) => `Eles são guardados criptografados e enviados somente a ${provider}.`,
  withThis: (application, provider) => html`Com eles, ${application} pode usar a sua conta ${provider}.`,
  enterOnlyIf: (application) => `Informe-os somente se você veio de ${application}.`,
  connectButton: "Conectar",
  optional: "(opcional)",
  noSuchAddress: "Esse endereço não existe",
  notAnAddress: (provider) => ({
    title: `Este não é um endereço de ${provider}`,
    advice: `Abra ${provider} em outra janela, copie o endereço da barra de endereços e cole-o aqui.`,
  }),
  cannotBeRight: (label) => `${label}: o valor não pode estar certo`,
  wholeHost: (example) => html`Por exemplo, ${example}. Você pode colar o endereço inteiro.`,
  partOfHost: (part, address) =>
    html`O que aparece no lugar de ${part} em ${address}. Você pode colar o endereço inteiro.`,
  notNow: {
    title: "Isto não está funcionando no momento",
    advice: "Não há nada de errado com a sua conta. Espere um minuto e tente novamente.",
  },
  wrongLink: {
    title: "Este link não funciona",
    advice: "Volte ao aplicativo que trouxe você até aqui e comece novamente a partir dele.",
  },
  notSetUp: {
    title: "Isto ainda não está configurado",
    advice:
      "Você não fez nada de errado. Avise os responsáveis pelo aplicativo que trouxe você até aqui e mostre esta página a eles.",
  },
  home: {
    title: "Um relé de chamadas a provedores funciona aqui",
    advice:
      "Ele chama outros serviços em nome dos usuários de aplicativos e não há nada para ver aqui. Para conectar ou desconectar uma conta, vá ao aplicativo que a usa.",
  },
};

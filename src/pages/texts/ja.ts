import { html } from "../html.js";
import type { Texts } from "./texts.js";

/** Japanese, in the polite form. */
export const ja: Texts = {
  language: "ja",
  connectTo: (application) => `${application} にアカウントを連携する`,
  nothingToConnect: (application) => `${application} で連携できるものはまだありません。`,
  backTo: (application) => `${application} に戻る`,
  mayUse: (application) =>
    `ここで連携したアカウントは ${application} で利用されます。連携の前に、提供元のサービスでログインと同意が求められます。連携はいつでも解除できます。`,
  forUser: (user, application) => html`アカウントは ${application} の ${user} に連携されます。`,
  find: "検索",
  findProvider: "サービスを検索",
  noneFound: "該当するサービスがありません。",
  yourAccounts: "連携中のアカウント",
  connect: (provider) => ["連携する", `:${provider}`],
  connectAgain: (provider) => ["再連携する", `:${provider}`],
  disconnect: (provider) => ["連携を解除", `:${provider}`],
  connected: "連携済み",
  notConnected: "未連携",
  ended: "連携が切れています",
  endedConnectAgain: "連携が切れています。引き続き利用するには再連携してください",
  isConnected: (provider) => `${provider} と連携しました`,
  isNotConnected: (provider) => `${provider} と連携できませんでした`,
  isDisconnected: (provider) => `${provider} との連携を解除しました`,
  isDisconnectedHere: (provider) => ({
    title: `${provider} との連携をここで解除しました`,
    advice: `${provider} 側には許可したアクセスが残っている場合があります。そちらも取り消すには、${provider} のアカウント設定から削除してください。`,
  }),
  closeWindow: "このウィンドウは閉じてかまいません。",
  why: {
    denied: "許可されなかったか、組織の設定で許可できません。誤操作の場合は、もう一度お試しください。",
    late: "時間がかかりすぎたか、サービス側で許可が取り消されました。もう一度お試しください。",
    unreachable: "サービスに接続できませんでした。1 分ほど待ってから、もう一度お試しください。",
    providerFails: "サービス側で問題が発生しています。1 分ほど待ってから、もう一度お試しください。",
    scope:
      "アプリケーションが、サービスの提供していない権限を求めています。アプリケーションの運営者にお知らせください。",
    notSetUp: "サービス側でのアプリケーションの設定が正しくありません。アプリケーションの運営者にお知らせください。",
    other: "サービスからエラーが返されました。もう一度お試しください。",
  },
  errorCode: (code) => `エラー: ${code}`,
  confirm: (provider, application) => `${provider} を ${application} に連携しますか?`,
  confirmUser: (user, application, provider) =>
    html`${application} が、ユーザー ${user} のためにあなたの ${provider} アカウントを利用しようとしています。`,
  confirmOnlyIf: (application) =>
    `${application} からこのページに来て、上記のユーザーがご本人である場合にのみ続けてください。誰かから送られたリンクで開いた場合は、このウィンドウを閉じてください。その人があなたのアカウントを利用できるようになってしまいます。`,
  asksFor: (application) => `${application} が求めている権限:`,
  asksAtProvider: (provider) => `求められる権限は、同意の前に ${provider} の画面に表示されます。`,
  continueTo: (name) => `${name} に進む`,
  onTheWayTo: (name) => `${name} に移動しています`,
  connectProvider: (provider) => `${provider} を連携する`,
  nothingMore: "連携のために入力する項目はこれ以上ありません。",
  whichAddress: (provider) => `${provider} のアカウントには固有のアドレスがあります。そのアドレスを入力してください。`,
  asksForThis: (provider) => `アカウントの連携のため、${provider} で次の情報が必要です。`,
  isKept: (provider) => `入力内容は暗号化して保存され、${provider} にのみ送信されます。`,
  withThis: (application, provider) =>
    html`これにより、${application} があなたの ${provider} アカウントを利用できるようになります。`,
  enterOnlyIf: (application) => `${application} からこのページに来た場合にのみ入力してください。`,
  connectButton: "連携する",
  optional: "(任意)",
  noSuchAddress: "アドレスが正しくありません",
  notAnAddress: (provider) => ({
    title: `${provider} のアドレスではありません`,
    advice: `別のウィンドウで ${provider} を開き、アドレスバーのアドレスをコピーして、ここに貼り付けてください。`,
  }),
  cannotBeRight: (label) => `「${label}」の値が正しくありません`,
  wholeHost: (example) => html`例: ${example}。アドレス全体を貼り付けてもかまいません。`,
  partOfHost: (part, address) => html`${address} の ${part} にあたる部分です。アドレス全体を貼り付けてもかまいません。`,
  notNow: {
    title: "現在ご利用いただけません",
    advice: "アカウントに問題はありません。1 分ほど待ってから、もう一度お試しください。",
  },
  wrongLink: {
    title: "このリンクは使用できません",
    advice: "元のアプリケーションに戻り、最初からやり直してください。",
  },
  notSetUp: {
    title: "まだ設定されていません",
    advice: "操作に問題はありません。元のアプリケーションの運営者に、このページを見せてお知らせください。",
  },
  home: {
    title: "ここではプロバイダー呼び出しリレーが動作しています",
    advice:
      "アプリケーションのユーザーに代わって他のサービスを呼び出すもので、ここに表示する内容はありません。アカウントの連携や解除は、利用しているアプリケーションから行ってください。",
  },
};

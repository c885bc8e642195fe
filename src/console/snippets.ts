import type { CallForm } from "./tried-call.js";

/** One way to make the call from elsewhere. */
export interface Snippet {
  readonly name: string;
  readonly text: string;
}

/**
 * The call for a shell and for a program, to be copied. The private key is left to the environment: what is pasted stays
 * in histories and files. Pure.
 *
 * @param form one that can be read, see `readCall()`.
 * @param headers those of the form, read.
 */
export function snippetsFor(
  form: CallForm,
  headers: Readonly<Record<string, string>>,
  relayUrl: string,
): readonly Snippet[] {
  const { providerName, userId, publicKey } = form;
  const call = callText(form, headers);
  const names = JSON.stringify({ providerName, userId, publicKey });
  const message = plain(`${names.slice(0, -1)},"call":${call}}`);
  const needsKey = form.privateKey !== "";
  return [
    { name: "curl", text: curl(form, call, relayUrl, needsKey) },
    { name: "buf curl", text: bufCurl(message, relayUrl, needsKey) },
    { name: "TypeScript", text: typeScript(message, relayUrl, needsKey) },
  ];
}

/** The payload's own text, so that no number is rounded. */
function callText({ url, method, payload }: CallForm, headers: Readonly<Record<string, string>>): string {
  const members = [`"url":${JSON.stringify(url)}`, `"method":${JSON.stringify(method)}`];
  if (payload.trim() !== "") members.push(`"payload":${payload.trim()}`);
  if (Object.keys(headers).length > 0) members.push(`"headers":${JSON.stringify(headers)}`);
  return plain(`{${members.join(",")}}`);
}

function curl(
  { providerName, userId, publicKey }: CallForm,
  call: string,
  relayUrl: string,
  needsKey: boolean,
): string {
  const query = new URLSearchParams({ user_id: userId, public_key: publicKey });
  const url = `${relayUrl}/oauth/method/${encodeURIComponent(providerName)}/call?${query}`;
  const key = needsKey ? KEY_FIELD : "";
  return `curl ${quoted(url)} \\\n  -H 'content-type: application/json' \\\n${key}  -d ${quoted(call)}`;
}

/** By reflection: no schema is needed. */
function bufCurl(message: string, relayUrl: string, needsKey: boolean): string {
  const cleartext = relayUrl.startsWith("http:") ? " --http2-prior-knowledge" : "";
  const key = needsKey ? KEY_FIELD : "";
  const method = `${relayUrl}/relay.v1.RelayService/Call`;
  return `npx buf curl --protocol grpc${cleartext} \\\n${key}  -d ${quoted(message)} \\\n  ${method}`;
}

/** JSON is what TypeScript reads as well. */
function typeScript(message: string, relayUrl: string, needsKey: boolean): string {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is text of a program
  const options = needsKey ? ', { headers: { authorization: `Bearer ${process.env["RELAY_PRIVATE_KEY"]}` } }' : "";
  return `import { toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { RelayService, ResultRowSchema } from "provider-call-relay-client/relay/v1";

const relay = createClient(
  RelayService,
  createConnectTransport({ baseUrl: ${JSON.stringify(relayUrl)}, httpVersion: "2" }),
);
const { rows } = await relay.call(${message}${options});
console.log(rows[0] && toJson(ResultRowSchema, rows[0]));`;
}

const KEY_FIELD = `  -H "authorization: Bearer $RELAY_PRIVATE_KEY" \\\n`;

/** For a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** JSON whose strings hold nothing that moves a terminal's cursor or hides what follows. */
function plain(json: string): string {
  return json.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    character === "\n" || character === "\t" || character === "\r" ? " " : escaped(character),
  );
}

function escaped(character: string): string {
  return Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
  ).join("");
}

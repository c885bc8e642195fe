import type { CallDescriptionJson, CallRequestJson } from "../../gen/relay/v1/relay_pb.js";
import { objectFrom, pairsFrom, UNSEEN } from "./text.js";

/** The call as code for another tool. */
export interface Snippet {
  readonly name: string;
  readonly text: string;
}

/**
 * The call as shell commands and as a program, to be copied. The private key is read from the environment, because
 * pasted text stays in histories and files. Throws as {@link readCall} does. Pure.
 */
export function snippetsFor(form: CallForm, relayUrl: string): readonly Snippet[] {
  const { providerName, userId, publicKey } = form;
  const call = callText(form, readCall(form).call?.headers ?? {});
  const names = JSON.stringify({ providerName, userId, publicKey });
  const message = plain(`${names.slice(0, -1)},"call":${call}}`);
  const needsKey = form.privateKey !== "";
  return [
    { name: "curl", text: curl(form, call, relayUrl, needsKey) },
    { name: "buf curl", text: bufCurl(message, relayUrl, needsKey) },
    { name: "TypeScript", text: typeScript(message, relayUrl, needsKey) },
  ];
}

/** The call as JSON. The payload is copied as text, so that no number is rounded. */
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

/** Uses server reflection, so no schema file is needed. */
function bufCurl(message: string, relayUrl: string, needsKey: boolean): string {
  const cleartext = relayUrl.startsWith("http:") ? " --http2-prior-knowledge" : "";
  const key = needsKey ? KEY_FIELD : "";
  const method = `${relayUrl}/relay.v1.RelayService/Call`;
  return `npx buf curl --protocol grpc${cleartext} \\\n${key}  -d ${quoted(message)} \\\n  ${method}`;
}

/** The message is JSON, which is also valid TypeScript. */
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

/** Quotes text for a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** JSON without control and format characters, which could move a terminal's cursor or hide text: they are escaped. */
function plain(json: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(/[\n\t\r]/g, " ").replace(UNSEEN, (character) => character.split("").map(escaped).join(""));
}

/** A call as typed in the form: text, not validated yet. */
export interface CallForm {
  readonly publicKey: string;
  readonly userId: string;
  readonly providerName: string;
  readonly method: string;
  readonly url: string;
  /** A JSON object; empty for none. */
  readonly payload: string;
  /** `name: value`, one a line. */
  readonly headers: string;
  /** Empty for none. Kept only in memory. */
  readonly privateKey: string;
}

export const EMPTY_FORM: CallForm = {
  publicKey: "",
  userId: "",
  providerName: "",
  method: "GET",
  url: "",
  payload: "",
  headers: "",
  privateKey: "",
};

/** Parses the form. What the relay validates itself is not checked here. Throws ApiError that names the field. Pure. */
export function readCall(form: CallForm): CallRequestJson {
  const problem = 'The payload must be a JSON object, such as {"title": "hello"}.';
  const payload = objectFrom(form.payload, "payload", problem) as NonNullable<CallDescriptionJson["payload"]>;
  const headers = pairsFrom(form.headers, ":", "headers", "accept: text/plain");
  const { publicKey, userId, providerName, privateKey, url, method } = form;
  return { publicKey, userId, providerName, privateKey, call: { url, method, payload, headers } };
}

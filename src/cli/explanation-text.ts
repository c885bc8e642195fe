import type { Explanation } from "../call/explanation.js";
import { toldStateOf } from "../tokens/connection-state.js";
import type { RenewalNeed } from "../tokens/renewal-need.js";
import { printable } from "./terminal-text.js";
import { textFields } from "./text-table.js";

const RENEWALS: Readonly<Record<RenewalNeed, string>> = {
  none: "none: the token is sent as it is",
  beside: "beside the call: the token is sent as it is",
  before: "before the call: the token has ended, and a new one is sent",
};

/** An explanation for a person: what was decided, then the request as it would be written. */
export function textFromExplanation(explanation: Explanation): string {
  const decided = textFields(fieldsOf(explanation));
  const request = requestText(explanation);
  return request === undefined ? decided : `${decided}\n\n${request}`;
}

function fieldsOf({ application, caller, provider, egress, connection, renewal }: Explanation) {
  const fields: Array<readonly [name: string, value: string]> = [];
  if (application) fields.push(["application", `${application.name}, ${application.callerAuth}, ${application.state}`]);
  if (caller) fields.push(["caller", verdictText(caller)]);
  if (provider) fields.push(["provider", provider.name]);
  if (egress) fields.push(["url", verdictText(egress)]);
  if (connection) fields.push(["connection", connectionText(connection)]);
  if (renewal) fields.push(["renewal", RENEWALS[renewal]]);
  return fields;
}

function verdictText({ isAllowed, rule }: NonNullable<Explanation["egress"]>): string {
  return `${isAllowed ? "allowed by" : "refused by"} ${rule}`;
}

function connectionText(connection: NonNullable<Explanation["connection"]>): string {
  const { state, reason } = toldStateOf(connection, Date.now());
  const { expiresAt } = connection;
  const end = expiresAt === undefined ? "token expires: unknown" : `token expires ${new Date(expiresAt).toISOString()}`;
  return `${reason === undefined ? state : `${state} (${reason})`}, ${end}`;
}

function requestText({ request }: Explanation): string | undefined {
  if (request === undefined) return undefined;
  const { method, origin, path, headers, body } = request;
  const lines = [`${method} ${origin}${path}`];
  for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  lines.push(body === undefined ? "(no body)" : `(${body.length} bytes of body)`);
  return lines.map(printable).join("\n");
}

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is text of the source
import { type Guard, guard } from "./guard.js";

/** Who connects whose account: state, links, pages, redirect addresses, hosts that get the client's secret. */
export const CONNECT_GUARDS: readonly Guard[] = [
  guard(
    "state: single use",
    [
      "DELETE FROM tickets WHERE id = :id AND kind = :kind AND browser = :browser AND expires_at > :now AND expires_at <= :latest RETURNING ${COLUMNS}",
      "SELECT ${COLUMNS} FROM tickets WHERE id = :id AND kind = :kind AND browser = :browser AND expires_at > :now AND expires_at <= :latest",
    ],
    "pages/state",
  ),
  guard(
    "links: none that lead nowhere",
    ["  await requireConnectable(options, application, providers);\n", ""],
    "api/rest/connections",
  ),
  guard(
    "opener: on the list, by an address",
    ["  requireOpenerOrigin(query.openerOrigin, application.allowedOrigins);\n", ""],
    "pages/opener",
  ),
  guard(
    "opener: on the list, by a link",
    ["  requireOpenerOrigin(payload.openerOrigin, application.allowedOrigins);\n", ""],
    "pages/opener",
  ),
  guard(
    "opener: still on the list in the end",
    ["openerOrigin: listed(openerOrigin, application.allowedOrigins)", "openerOrigin"],
    "pages/opener",
  ),
  guard(
    "links: no empty page",
    ["  if (providers.length === 0) await requireOffers(options, input);\n", ""],
    "api/rest/connections",
  ),
  guard(
    "state: taken, not looked at",
    ['options.tickets.take("STATE", state, browser)', 'options.tickets.find("STATE", state, browser)'],
    "pages/state",
  ),
  guard("state: browser binding", ['browser: kind === "LINK" ? "" : hashOf(browser)', 'browser: ""'], "pages/state"),
  guard(
    "state: kind",
    [
      "SELECT ${COLUMNS} FROM tickets WHERE id = :id AND kind = :kind AND",
      "SELECT ${COLUMNS} FROM tickets WHERE id = :id AND :kind <> '' AND",
    ],
    "store/tickets",
  ),
  guard(
    "state: its end",
    [
      "DELETE FROM tickets WHERE id = :id AND kind = :kind AND browser = :browser AND expires_at > :now AND",
      "DELETE FROM tickets WHERE id = :id AND kind = :kind AND browser = :browser AND 0 < CAST(:now AS BIGINT) AND",
    ],
    "store/tickets",
  ),
  guard(
    "state: application of the same key",
    ["if (application.id !== ticket.applicationId) throw", "if (false) throw"],
    "pages/application-twin",
  ),
  guard(
    "state: sealed for its owner",
    ['column: "payload", applicationId, userId,', 'column: "payload", applicationId, userId: "",'],
    "oauth/tickets",
  ),
  guard("second cookie", ["values.length === 1 ? values : []", "values"], "pages/browser-cookie"),
  guard("iss of the response", ["return isOwn ? iss", "return true ? iss"], "pages/state"),
  guard(
    "iss that is promised",
    ["oauth2?.authorizationResponseIssParameterSupported ?? false", "false"],
    "pages/state",
  ),
  guard(
    "code that stands twice",
    ['return values.length === 1 ? (values[0] ?? "") : "";', 'return values[0] ?? "";'],
    "pages/state",
  ),
  guard("error code's form", ["ERROR_CODE.test(error.error) ? error.error :", "error.error ||"], "pages/state"),
  guard(
    "method as an object's key",
    [
      'const answer = answers.get(request.method ?? "");',
      'const answer = (Object.fromEntries(answers) as Record<string, Answer>)[request.method ?? ""];',
    ],
    "pages/flow",
  ),

  guard(
    "redirect list",
    ["allowed.includes(redirectUri)", "allowed.some((each) => redirectUri.startsWith(each))"],
    "pages/redirects",
  ),
  guard(
    "redirect list of an address with a proof",
    ["  requireRedirectUri(query.redirectUri, application.allowedRedirectUris);\n", ""],
    "pages/redirects",
  ),
  guard(
    "redirect list of a link",
    ["  requireRedirectUri(redirectUri, application.allowedRedirectUris);\n", ""],
    "api/rest/connections",
  ),
  guard(
    "redirect list that became shorter, pages",
    ["  requireRedirectUri(payload.redirectUri, application.allowedRedirectUris);\n", ""],
    "pages/links",
  ),
  guard(
    "redirect list that became shorter, callback",
    ["redirectUri: listed(redirectUri, application.allowedRedirectUris)", "redirectUri"],
    "pages/state",
  ),
  guard(
    "redirect address: scheme of its own",
    ["(?:\\.[a-z0-9+-]+)+:", "(?:\\.[a-z0-9+-]+)*:"],
    "applications/redirect-uri",
  ),
  guard(
    "redirect address: as the parser spells it",
    ["return href === text ? { value: text } :", 'return href !== "" ? { value: text } :'],
    "applications/redirect-uri",
  ),

  guard(
    "whole host, to begin",
    [
      "requireClient(provider, await options.oauthClients.find(application.id, provider.name))",
      "(await options.oauthClients.find(application.id, provider.name)) as StoredOAuthClient",
    ],
    "pages/parameters",
  ),
  guard(
    "keys: by links alone",
    ['if (originParameters === undefined) throw linkNeeded("Keys', 'if (false) throw linkNeeded("Keys'],
    "pages/enter-keys",
  ),
  guard(
    "keys: on the page of a link alone",
    ["!hasOwnPage(provider) && isLinked &&", "!hasOwnPage(provider) &&"],
    "pages/enter-keys",
  ),
  guard(
    "links: their values count",
    [
      "const bound = { ...fixed, ...boundValuesOf(provider, client) };",
      "const bound = boundValuesOf(provider, client);",
    ],
    "pages/parameters",
  ),
  guard(
    "links: their values count in the form for keys",
    ["new Map([...partOf(false), ...Object.entries(fixed)])", "new Map([...Object.entries(fixed), ...partOf(false)])"],
    "pages/enter-keys",
  ),
  guard(
    "hold of a client: at one endpoint",
    ["endpointsOf(place)?.get(place.endpoint)", "[...(endpointsOf(place)?.values() ?? [])][0]"],
    "oauth/client-holds",
  ),
  guard(
    "credentials: none of an older definition's",
    ["if (filled === undefined && namesIn(place.value)", "if (false && namesIn(place.value)"],
    "oauth/older-connections",
  ),
  guard(
    "credentials: no token for less than is asked for",
    ["if (server.grant?.isWhole === false) throw", "if (false) throw"],
    "oauth/older-connections",
  ),
  guard(
    "emptied token: none is sent after a refusal",
    ["row.version !== stored.version && !isUnfetched(row)", "row.version !== stored.version"],
    "oauth/client-credentials",
  ),
  guard(
    "refused grant: the operator's to mend",
    ['if (verdict.kind !== "ended" || grant.isOwnClient) return verdict;', "if (true) return verdict;"],
    "oauth/client-credentials",
  ),
  guard(
    "refused grant: the user's to mend",
    ['if (verdict.kind === "misconfigured" && grant.isOwnClient) return { ...verdict, kind: "ended" };', ""],
    "oauth/client-credentials",
  ),
  guard(
    "own client: by its secret",
    ['if (secrets !== undefined) return Object.hasOwn(secrets, "client_secret");', ""],
    "oauth/client-credentials",
  ),
  guard(
    "import: newer tokens stay",
    ["ELSE connections.obtained_at END < :as_of", "ELSE connections.obtained_at END < :as_of OR 1 = 1"],
    "cli/connection-bulk",
  ),
  guard(
    "export: of one user",
    [
      "applicationId: publicKey, userId, providerName: provider }",
      'applicationId: publicKey, userId: "", providerName: provider }',
    ],
    "cli/connection-bulk",
  ),
  guard(
    "whole host, for every token request",
    ["if (stored === undefined || freeHostParameter(provider, stored) !== undefined)", "if (stored === undefined)"],
    "oauth/client-secret",
  ),
  guard(
    "client of another host",
    ["return isBoundElsewhere ? undefined : { stored, bound };", "return { stored, bound };"],
    "oauth/client-secret",
  ),
  guard(
    "bound parameter before what a user says",
    [
      "new Map([...originParameters, ...Object.entries(bound)]",
      "new Map([...Object.entries(bound), ...originParameters]",
    ],
    "pages/parameters",
  ),
  guard(
    "told host: judged by the templates",
    ["if (!provider.hostTemplates.some(isMisfit)) texts.set(name, text);", "texts.set(name, text);"],
    "providers/connection-value",
  ),
  guard(
    "told host: judged by the list of hosts",
    ["value.hosts.length > 0 && !value.hosts.some((host) => isOneOf(text, host))", "false"],
    "providers/connection-value",
  ),
  guard("told value: no other with it", ["      !told.has(name) ||\n", ""], "providers/connection-value"),
  guard(
    "told host: only with a list in the definition",
    ["if (isWhole && isTold && hosts.length === 0 && choices.length === 0)", "if (false)"],
    "providers/definition-values",
  ),
  guard(
    "look-up: at an origin of the definition",
    ["source.url.startsWith(`${origin}/`)", 'source.url.startsWith("https://")'],
    "providers/definition-values",
  ),
  guard("dot segments in an endpoint", ['DOTS.test(textOf(name) || ".")', "false"], "providers/endpoint"),
  guard(
    "connect parameters: those of the definition",
    ["if (!allowed.includes(name)) {", "if (false) {"],
    "oauth/connection-values",
  ),
  guard(
    "posted callback: no tokens in an address",
    ["for (const name of TOKENS) parameters.delete(name);", ""],
    "oauth/connection-values",
  ),
  guard(
    "oauth1: token of the attempt",
    ['onlyValue(parameters, "oauth_token") !== token) return "invalid_response";', 'false) return "invalid_response";'],
    "oauth/oauth1",
  ),
  guard(
    "oauth1: parameters of the caller in the query",
    ["if (mark !== -1 && holdsProtocolParameter(target.slice(mark + 1)))", "if (false)"],
    "oauth/oauth1",
  ),
  guard(
    "oauth1: parameters of the caller in a form",
    ["if (holdsProtocolParameter(form))", "if (false)"],
    "oauth/oauth1",
  ),
  guard("oauth1: length of a form", ["if (form.length > MAX_SIGNED_FORM_BYTES) throw tooLarge();", ""], "oauth/oauth1"),
  guard(
    "oauth1: secrets in answers",
    ["secrets: secrets.flatMap((each) => each ?? []),", "secrets: [],"],
    "oauth/oauth1",
  ),
  guard(
    "oauth1: tokens that no field can hold",
    ["TOKEN_PARAMETERS.every((name) => isToken(told(name)))", "true"],
    "oauth/oauth1",
  ),
  guard(
    "oauth1: a moment for each request",
    ['nonce: randomBytes(16).toString("hex")', 'nonce: "0123456789abcdef"'],
    "oauth/oauth1",
    "oauth/signature",
  ),
];

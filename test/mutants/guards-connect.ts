import { type Guard, guard } from "./guard.js";

const CALLBACK = "authorization/callback.ts";
const VISIT = "authorization/visit.ts";
const TICKETS = "store/tickets.ts";

/** Who connects whose account: state, links, pages, redirect addresses, hosts that get the client's secret. */
export const CONNECT_GUARDS: readonly Guard[] = [
  guard(
    "state: single use",
    TICKETS,
    [
      "DELETE FROM tickets WHERE id = ? AND kind = ? AND browser = ? AND expires_at > ? RETURNING *",
      "SELECT * FROM tickets WHERE id = ? AND kind = ? AND browser = ? AND expires_at > ?",
    ],
    "pages/state",
  ),
  guard(
    "state: taken, not looked at",
    CALLBACK,
    ['options.tickets.take("STATE", state, browser)', 'options.tickets.find("STATE", state, browser)'],
    "pages/state",
  ),
  guard(
    "state: browser binding",
    "authorization/tickets.ts",
    ['browser: kind === "LINK" ? "" : hashOf(browser)', 'browser: ""'],
    "pages/state",
  ),
  guard(
    "state: kind",
    TICKETS,
    [
      "SELECT * FROM tickets WHERE id = ? AND kind = ? AND browser = ? AND expires_at > ?",
      "SELECT * FROM tickets WHERE id = ? AND ? <> '' AND browser = ? AND expires_at > ?",
    ],
    "store/tickets",
  ),
  guard(
    "state: its end",
    TICKETS,
    [
      "DELETE FROM tickets WHERE id = ? AND kind = ? AND browser = ? AND expires_at > ? RETURNING *",
      "DELETE FROM tickets WHERE id = ? AND kind = ? AND browser = ? AND 0 < ? RETURNING *",
    ],
    "store/tickets",
  ),
  guard(
    "state: application of the same key",
    CALLBACK,
    ["application.id !== ticket.applicationId || ", ""],
    "pages/application-twin",
  ),
  guard(
    "state: sealed for its owner",
    "authorization/tickets.ts",
    ['column: "payload", applicationId, userId,', 'column: "payload", applicationId, userId: "",'],
    "authorization/tickets",
  ),
  guard(
    "second cookie",
    "pages/browser-cookie.ts",
    ["values.length === 1 ? values : []", "values"],
    "pages/browser-cookie",
  ),
  guard("iss of the response", CALLBACK, ["const issuer = known ??", "const issuer ="], "pages/state"),
  guard(
    "code that stands twice",
    CALLBACK,
    ['return values.length === 1 ? (values[0] ?? "") : "";', 'return values[0] ?? "";'],
    "pages/state",
  ),
  guard(
    "error code's form",
    CALLBACK,
    ["ERROR_CODE.test(error.error) ? error.error :", "error.error ||"],
    "pages/state",
  ),
  guard(
    "method as an object's key",
    "pages/handler.ts",
    [
      'const answer = answers.get(request.method ?? "");',
      'const answer = (Object.fromEntries(answers) as Record<string, Answer>)[request.method ?? ""];',
    ],
    "pages/flow",
  ),

  guard(
    "redirect list",
    "authorization/redirect.ts",
    ["allowed.includes(redirectUri)", "allowed.some((each) => redirectUri.startsWith(each))"],
    "pages/redirects",
  ),
  guard(
    "redirect list of an address with a proof",
    VISIT,
    ["  requireRedirectUri(query.redirectUri, application.allowedRedirectUris);\n", ""],
    "pages/redirects",
  ),
  guard(
    "redirect list of a link",
    "authorization/connect-link.ts",
    ["  requireRedirectUri(redirectUri, application.allowedRedirectUris);\n", ""],
    "rest/connections",
  ),
  guard(
    "redirect list that became shorter, pages",
    VISIT,
    ["  requireRedirectUri(payload.redirectUri, application.allowedRedirectUris);\n", ""],
    "pages/links",
  ),
  guard(
    "redirect list that became shorter, callback",
    CALLBACK,
    ["redirectUri !== undefined && application.allowedRedirectUris.includes(redirectUri)", "redirectUri !== undefined"],
    "pages/state",
  ),
  guard(
    "redirect address: scheme of its own",
    "applications/redirect-uri.ts",
    ["(?:\\.[a-z0-9+-]+)+:", "(?:\\.[a-z0-9+-]+)*:"],
    "applications/redirect-uri",
  ),
  guard(
    "redirect address: as the parser spells it",
    "applications/redirect-uri.ts",
    ["return url.href === text ? { value: text } :", 'return url.href !== "" ? { value: text } :'],
    "applications/redirect-uri",
  ),

  guard(
    "whole host, to begin",
    "authorization/start.ts",
    ["  requireBoundHost(oauth2, client);\n", ""],
    "pages/parameters",
  ),
  guard(
    "whole host, for every token request",
    "authorization/authorization-server.ts",
    ["  if (freeHostParameter(provider.oauth2, stored) !== undefined) return undefined;\n", ""],
    "authorization/client-secret",
  ),
  guard(
    "client of another host",
    "authorization/authorization-server.ts",
    ["const endpoints = isBoundElsewhere ? undefined :", "const endpoints ="],
    "authorization/client-secret",
  ),
  guard(
    "bound parameter before what a user says",
    "authorization/start.ts",
    ["new Map([...originParameters, ...bound])", "new Map([...bound, ...originParameters])"],
    "pages/parameters",
  ),

  guard(
    "link: single use",
    VISIT,
    ['options.tickets.take("LINK", secret, "")', 'options.tickets.find("LINK", secret, "")'],
    "pages/links",
  ),
  guard(
    "link to one provider opens no other",
    "authorization/connect-link.ts",
    [": [provider.name];", ": [];"],
    "pages/links",
  ),
  guard("link to one provider opens no page", "pages/connect.ts", ["  requirePage(begun);\n", ""], "pages/links"),
  guard(
    "page of a parameter ends no connection",
    "pages/connect.ts",
    ["  requirePage(visit);\n", ""],
    "pages/parameters",
  ),
  guard(
    "link: private key",
    "rpc/connection-operations.ts",
    ['asserted, caller, "PRIVATE_KEY"', "asserted, caller"],
    "rest/connections",
  ),
  guard(
    "link: ends with the private key",
    "store/applications.ts",
    ["if (row !== undefined && patch.privateKeyHash !== undefined) deleteTickets.run(row.id);", "void deleteTickets;"],
    "store/tickets",
    "pages/links",
  ),
  guard(
    "session: browser binding",
    VISIT,
    ['options.tickets.find("SESSION", session, browser)', 'options.tickets.find("SESSION", session, "")'],
    "pages/connect-page",
  ),
  guard("requireListed, to begin", "pages/start.ts", ["  requireListed(visit, provider.name);\n", ""], "pages/links"),
  guard(
    "requireListed, to disconnect",
    "pages/connect.ts",
    ["  requireListed(visit, providerName);\n", ""],
    "pages/connect-page",
  ),
  guard(
    "list of names that nobody has",
    VISIT,
    [
      "query.providers.map((name) => options.catalog.find(name)?.name ?? name)",
      "query.providers.flatMap((name) => options.catalog.find(name)?.name ?? [])",
    ],
    "pages/connect-page",
  ),
  guard(
    "private key in an address",
    "pages/page-query.ts",
    ['  if (parameters.getAll("private_key").some((value) => value !== "")) throw privateKeyShown();\n', ""],
    "pages/redirects",
  ),
  guard(
    "id in bytes that are no UTF-8",
    "pages/page-query.ts",
    ['value.includes("\\ufffd")', "false"],
    "pages/redirects",
  ),
  guard(
    "application that connects by links only",
    VISIT,
    ['  if (application.callerAuth === "PRIVATE_KEY") throw linkNeeded();\n', ""],
    "pages/redirects",
  ),
  guard(
    "user's signature to begin",
    VISIT,
    ["  requireAllowedCaller(options, application, query, { rule: undefined });\n", ""],
    "pages/redirects",
  ),
  guard(
    "notice from elsewhere",
    "pages/connect.ts",
    ["begun.session === undefined ? undefined : noticeFrom(options, query)", "noticeFrom(options, query)"],
    "pages/connect-page",
  ),
  guard("HTML escaping", "pages/html.ts", ["value.replace(/[&<>\"']/g,", "value.replace(/[\\u0000]/g,"], "pages/html"),
  guard("HTML escaping, quotes", "pages/html.ts", ["/[&<>\"']/g", "/[&<>]/g"], "pages/html"),
  guard(
    "one visitor of an IPv6 network",
    "pages/handler.ts",
    ["takeVisit(visitorFrom(address))", "takeVisit(address)"],
    "pages/visitor",
  ),
  guard("visits", "pages/handler.ts", ["requireVisit(await", "void (await"], "pages/visitor"),
  guard(
    "limit of tickets",
    TICKETS,
    ["if ((count.get(ticket.applicationId, ticket.kind, now) ?? 0) >= most) return false;", "void count; void most;"],
    "store/tickets",
  ),
  guard(
    "stop waits for a redemption",
    "server.ts",
    ["    await authorization.pending.settled();\n", ""],
    "pages/redemption",
  ),
  guard(
    "redemption outlives the browser's visit",
    CALLBACK,
    [
      "options.pending.track(connect(options, ticket, provider, parameters))",
      "connect(options, ticket, provider, parameters)",
    ],
    "pages/redemption",
  ),
  guard(
    "public address in the clear",
    "public-url.ts",
    [
      "parsePublicUrl(new URL(listenUrlFrom(config, address)).origin)",
      "(parsePublicUrl, new URL(listenUrlFrom(config, address)).origin)",
    ],
    "public-url",
  ),
  guard("refusal over Connect", "rpc/invalid-argument.ts", ["error.details !== undefined || ", ""], "rpc/connections"),
];

import { type Guard, guard } from "./guard.js";

const VISIT = "authorization/visit.ts";

/** What links, pages and their forms may do, and what they show; and that what has begun is finished. */
export const PAGE_GUARDS: readonly Guard[] = [
  guard(
    "link: single use",
    VISIT,
    ['options.tickets.take("LINK", secret, "")', 'options.tickets.find("LINK", secret, "")'],
    "pages/links",
  ),
  guard(
    "link to one provider opens no other",
    "authorization/connect-link.ts",
    [": [provider];", ": [];"],
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
    ["if (patch.privateKeyHash !== undefined) deleteTickets.run(row.id);", "void deleteTickets;"],
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
    ["  requireAllowedCaller(options, application, query);\n", ""],
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
    "store/tickets.ts",
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
    "authorization/callback.ts",
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
  guard("refusal over Connect", "rpc/connect-error.ts", [" || details !== undefined", ""], "rpc/connections"),
];

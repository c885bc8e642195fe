import { type Guard, guard } from "./guard.js";

/** What links, pages and their forms may do, and what they show; and that what has begun is finished. */
export const PAGE_GUARDS: readonly Guard[] = [
  guard(
    "link: single use",
    ["(yield* first(TAKE, { ...link, ...validity }))", "(yield* first(FIND, { ...link, ...validity }))"],
    "store/tickets",
    "pages/links",
  ),
  guard("link to one provider opens no other", [": [provider];", ": [];"], "pages/links"),
  guard("link to one provider opens no page", ["  requirePage(begun);\n", ""], "pages/links"),
  guard("page of a parameter ends no connection", ["  requirePage(connectSession);\n", ""], "pages/parameters"),
  guard(
    "link: private key",
    ['asserted, caller, { callerAuth: "PRIVATE_KEY" }', "asserted, caller"],
    "api/rest/connections",
  ),
  guard(
    "link: ends with the private key",
    ["if (patch.privateKeyHash !== undefined) yield* run(DELETE_TICKETS, { id: current.id });", ""],
    "store/tickets",
    "pages/links",
  ),
  guard(
    "session: browser binding",
    ['options.tickets.find("SESSION", session, browser)', 'options.tickets.find("SESSION", session, "")'],
    "pages/connect-page",
  ),
  guard("requireListed, to begin", ["  requireListed(connectSession, provider.name);\n", ""], "pages/links"),
  guard("requireListed, to enter keys", ["  requireListed(connectSession, name);\n", ""], "pages/enter-keys"),
  guard("requireListed, to disconnect", ["  requireListed(connectSession, providerName);\n", ""], "pages/connect-page"),
  guard(
    "list of names that nobody has",
    [
      "query.providers.map((name) => options.catalog.find(name)?.name ?? name)",
      "query.providers.flatMap((name) => options.catalog.find(name)?.name ?? [])",
    ],
    "pages/connect-page",
  ),
  guard(
    "private key in an address",
    ['  if (parameters.getAll("private_key").some((value) => value !== "")) throw privateKeyShown();\n', ""],
    "pages/redirects",
  ),
  guard("id in bytes that are no UTF-8", ['value.includes("\\ufffd")', "false"], "pages/redirects"),
  guard(
    "application that connects by links only",
    ['  if (application.callerAuth === "PRIVATE_KEY") throw linkNeeded();\n', ""],
    "pages/redirects",
  ),
  guard("user's signature to begin", ["  requireAllowedCaller(options, application, query);\n", ""], "pages/redirects"),
  guard(
    "notice from elsewhere",
    [
      "begun.session === undefined ? undefined : noticeFrom(options, query, texts)",
      "noticeFrom(options, query, texts)",
    ],
    "pages/connect-page",
  ),
  guard(
    "page in front of the provider",
    ["isConfirmed: connectSession.session !== undefined,", "isConfirmed: true,"],
    "pages/confirm",
  ),
  guard("sign-in link: single use", ["if (isMine !== true) return undefined;", ""], "admin/sign-in"),
  guard("sign-in link: its end", ["now < Number(endsAt) && signature", "signature"], "admin/sign-in"),
  guard(
    "sign-in link: made with the token",
    ["isOperator(each) && timingSafeEqual(signature, signatureOf(each, textOf(name, endsAt)))", "isOperator(each)"],
    "admin/sign-in",
  ),
  guard("sign-in link: guesses", ["    wrong.add(client);\n    return", "    return"], "admin/sign-in"),
  guard(
    "session of a sign-in link: its end",
    ["if (id === undefined || now() >= Number(endsAt))", "if (id === undefined)"],
    "admin/sign-in",
  ),
  guard(
    "session of the console: ended by signing out",
    ["return isEnded ? { isAdmitted: false, waitSeconds: 0 } :", "return"],
    "admin/sign-in",
  ),
  guard("session of the console: what it watches", ["if (await isOver())", "if (false)"], "admin/sign-in"),
  guard("HTML escaping", ["value.replace(/[&<>\"']/g,", "value.replace(/[\\u0000]/g,"], "pages/html"),
  guard("HTML escaping, quotes", ["/[&<>\"']/g", "/[&<>]/g"], "pages/html"),
  guard(
    "one visitor of an IPv6 network",
    ["takeRequest(clientNetworkOf(address))", "takeRequest(address)"],
    "pages/visitor",
  ),
  guard(
    "visits",
    ["if (waitSeconds > 0) throw rateLimited(", "if (waitSeconds < 0) throw rateLimited("],
    "pages/visitor",
  ),
  guard("limit of tickets", ["if ((counted?.count ?? 0) >= most) {", "if (false) {"], "store/tickets"),
  guard("limit of tickets: links", ['if (ticket.kind === "LINK") return false;', ""], "store/tickets"),
  guard("stop waits for a redemption", ["    await authorization.pending.settled();\n", ""], "pages/redemption"),
  guard(
    "redemption outlives the browser's visit",
    [
      "options.pending.track(connect(options, ticket, provider, parameters))",
      "connect(options, ticket, provider, parameters)",
    ],
    "pages/redemption",
  ),
  guard(
    "public address in the clear",
    [
      "parsePublicUrl(new URL(listenUrlFrom(config, address)).origin)",
      "(parsePublicUrl, new URL(listenUrlFrom(config, address)).origin)",
    ],
    "config/public-url",
  ),
  guard("refusal over Connect", [" || details !== undefined", ""], "api/rpc/connections"),
];

import { type Guard, guard } from "./guard.js";

const TOKEN = "applications/call-token";
const RULES = "applications/call-rules";
const SERVER = "server/call-tokens";
const ADMIN = "admin/call-tokens";

/** Call tokens, and the rules in them. */
export const TOKEN_GUARDS: readonly Guard[] = [
  guard("call token: length", ["if (text.length > MAX_CALL_TOKEN_LENGTH) return {", "if (false) return {"], TOKEN),
  guard("call token: alg", ["if (alg !== HEADER.alg) return", "if (false) return"], TOKEN),
  guard("call token: typ", ["if (typ !== HEADER.typ) return", "if (false) return"], TOKEN),
  guard("call token: crit", ['if ("crit" in others) return', "if (false) return"], TOKEN),
  guard("call token: one spelling", ['bytes.toString("base64url") === base64url ? bytes', "true ? bytes"], TOKEN),
  guard("call token: members once", ["|| members.has(member.key)) return undefined", ") return undefined"], TOKEN),
  guard("call token: depth", ["const JSON_LIMITS = { maxDepth: 8, maxKeys: 1000 }", "const JSON_LIMITS = {}"], TOKEN),
  guard("call token: signature", ["if (!isSigned(shown, verification)) return", "if (false) return"], TOKEN),
  guard(
    "call token: key that it was verified by",
    ["isSame(known.privateKeyHash, application.privateKeyHash)", "true"],
    TOKEN,
    SERVER,
  ),
  guard(
    "call token: room for those that are remembered",
    ["while (rememberedLength > MAX_REMEMBERED_LENGTH)", "while (false)"],
    TOKEN,
  ),
  guard("call token: remembered unverified", ["if (isRight) remember(", "remember("], TOKEN),
  guard("call token: application", ["if (publicKey !== application.publicKey) return", "if (false) return"], TOKEN),
  guard("call token: user", ["if (subject !== userId) return", "if (false) return"], TOKEN),
  guard(
    "call token: user of the request",
    ['userId: userId || callToken?.token.userId || ""', "userId: callToken?.token.userId || userId"],
    TOKEN,
  ),
  guard("call token: lifetime", ["lifetime > maxSeconds", "false"], TOKEN),
  guard("call token: lifetime of less than nothing", ["lifetime <= 0 ||", ""], TOKEN),
  guard("call token: end", ["if (expiresAt + LEEWAY_SECONDS <= seconds) return", "if (false) return"], TOKEN),
  guard(
    "call token: beginning",
    [
      "if (Math.max(issuedAt, notBefore) - LEEWAY_SECONDS > seconds) return",
      "if (notBefore - LEEWAY_SECONDS > seconds) return",
    ],
    TOKEN,
  ),
  guard("call token: nbf", ["Math.max(issuedAt, notBefore) - LEEWAY_SECONDS", "issuedAt - LEEWAY_SECONDS"], TOKEN),
  guard("call token: audience alone", ["aud.length === 1 && aud[0] === AUDIENCE", "aud.includes(AUDIENCE)"], TOKEN),
  guard("call token: providers", ["providers !== undefined && !isNames(providers)", "false"], TOKEN),
  guard(
    "call token: one at most",
    ["if (more.length > 0) throw new RelayError", "if (false) throw new RelayError"],
    TOKEN,
  ),
  guard("call token: for calls alone", ["if (callToken !== undefined && !takesCallToken) {", "if (false) {"], SERVER),
  guard("call token: connections of its providers", ["found.filter(mayKnow)", "found"], SERVER),
  guard("call token: its providers", ["if (!isForProvider(callToken.token, names)) {", "if (false) {"], "protocols"),
  guard("call token: its rules", ["if (verdict?.isAllowed === false) throw", "if (false) throw"], "protocols"),
  guard(
    "call token: rules before the connection",
    ["requirePermission(application, call, { provider, checked, egress }, decided);", ""],
    "protocols",
  ),
  guard(
    "call token: the whole query",
    ["target: appendQuery(egress.path, query) };", "target: egress.path };"],
    "protocols",
  ),
  guard("call token: preflight of unlisted pages", ["? await isListed(listsOrigin, origin)", "? true"], SERVER),

  guard(
    "rules: unknown members",
    ["if (names.some((name) => !MEMBERS.some(([known]) => known === name))) {", "if (false) {"],
    RULES,
  ),
  guard(
    "rules: empty lists",
    [
      "Array.isArray(value) && value.length > 0 && value.length <= MAX_ENTRIES",
      "Array.isArray(value) && value.length <= MAX_ENTRIES",
    ],
    RULES,
  ),
  guard(
    "rules: patterns that are ambiguous",
    ['!segment.includes("*") || segment === "*" || segment === "**"', "true"],
    RULES,
  ),
  guard("rules: methods", ["(methods === undefined || methods.includes(sent))", "true"], RULES),
  guard("rules: hosts", ["rule.hosts !== undefined && !rule.hosts.includes(host)", "false"], RULES),
  guard("rules: paths", ["map !== undefined && rule.paths.some(", "true || rule.paths.some("], RULES),
  guard("rules: no empty segment for stars", ['& ~(places.get("") ?? 0n)', ""], RULES),
  guard(
    "rules: each pattern once a request",
    ["at) => isOpen[at] &&", "at) => fitsPlace(rules[at], host, map) &&"],
    RULES,
  ),
  guard("rules: empty segments", ['segment === "" ? at === segments.length - 1', 'segment === "" ? true'], RULES),
  guard("rules: many segments", ["if (segments.length > MAX_PATH_SEGMENTS) return undefined;", ""], RULES),
  guard("rules: text outside of ASCII", ["if (/[^\\x21-\\x7e]/.test(segment)) return true;", ""], RULES),
  guard(
    "rules: overriding parameters",
    ['query === "" ? headers : [...headers, ...query', "true ? headers : [...headers, ...query"],
    RULES,
  ),
  guard(
    "rules: overriding fields",
    ['query === "" ? headers : [...headers, ...query', 'query === "" ? [] : [...query'],
    RULES,
  ),
  guard(
    "rules: second places",
    ["namesOtherPlace(read, headers) ? undefined : segmentsFrom(path)", "segmentsFrom(path)"],
    RULES,
  ),
  guard("rules: second places in Swift", ["|object[-_]manifest|", "|"], RULES),
  guard("rules: lists of methods", ["[value, ...value.split(BETWEEN_METHODS)]", "[value]"], RULES),
  guard(
    "rules: methods parted by what is no letter",
    ["[value, ...value.split(BETWEEN_METHODS)]", "value.split(BETWEEN_METHODS)"],
    RULES,
  ),
  guard(
    "rules: decoding of parameters",
    ["rest > 0 && ESCAPE.test(read); rest--", "rest > MAX_DECODINGS; rest--"],
    RULES,
  ),
  guard(
    "rules: decoding of parameters more than once",
    ["const MAX_DECODINGS = 8;", "const MAX_DECODINGS = 1;"],
    RULES,
  ),

  guard(
    "call token: lifetime of its application",
    [
      "const maxSeconds = maxSecondsOf(application); if (lifetime",
      "const maxSeconds = MAX_CALL_TOKEN_SECONDS; if (lifetime",
    ],
    TOKEN,
  ),
  guard(
    "call token: lifetime of a new one",
    ["input.lifetimeSeconds < 1 || input.lifetimeSeconds > maxSeconds", "false"],
    ADMIN,
  ),
  guard(
    "call token: length of a new one",
    ["if (made.callToken.length > MAX_CALL_TOKEN_LENGTH) {", "if (false) {"],
    ADMIN,
  ),
  guard(
    "call token: audit of a new one",
    ['await auditAction(administration, "ApplicationService.CreateCallToken", resource); return made;', "return made;"],
    ADMIN,
  ),
  guard("call token: an open door", ['if (callerAuth === "PUBLIC_KEY") writeNote(OPEN_DOOR);', ""], "cli/token"),
  guard("rules of an application", ["if (application?.isAllowed === false) throw", "if (false) throw"], ADMIN),
  guard(
    "rules of an application: unknown providers",
    [
      'if (provider === undefined) return { problem: "is not a known provider", entry };',
      "if (provider === undefined) continue;",
    ],
    ADMIN,
  ),
  guard(
    "rules of an application: size",
    ["if (length <= MAX_RULES_LENGTH) return {", "if (length > 0) return {"],
    ADMIN,
  ),
  guard(
    "rules of an application: members once in the file",
    [
      'validateJson(bytes, limits) === "valid" ? uniqueValueFrom(bytes)',
      'validateJson(bytes, limits) === "valid" ? JSON.parse(Buffer.from(bytes).toString())',
    ],
    "cli/token",
  ),
  guard("rules: encoded twice", ["|| STILL_ENCODED.test(read) ||", "||"], RULES),
  guard("rules: separators", ["|| SEPARATOR.test(read)", ""], RULES),
  guard("rules: look-alikes", ['decodePercent(segment)?.normalize("NFKC")', "decodePercent(segment)"], RULES),
  guard("rules: dots", ["|| DOTS.test(read)", ""], RULES),
];

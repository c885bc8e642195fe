import { type Guard, guard } from "./guard.js";

/** What is passed through. */
export const VIA_GUARDS: readonly Guard[] = [
  guard(
    "via: the path goes out as it was written",
    ["passed !== undefined && passed.target !== decision.path", "false"],
    "api/via/pass-through",
  ),
  guard(
    "via: methods that are never sent",
    ["if (!METHOD.test(method) || NEVER_SENT.test(method)) {", "if (false) {"],
    "api/via/pass-through",
  ),
  guard(
    "via: placeholders are not filled",
    [
      "passed === undefined ? fillPlaceholders(egress.path, provider, tokens) : egress.path",
      "fillPlaceholders(egress.path, provider, tokens)",
    ],
    "api/via/pass-through",
  ),
  guard(
    "via: the proof once in the head",
    ["if (proofs.text(path) === path && headers", "if (true || headers"],
    "api/via/pass-through",
  ),
  guard("via: no proof in the body", ["if (holdsProof) {", "if (false) {"], "api/via/pass-through"),
  guard("via: fields of the relay's own", ['|| meant.startsWith("x-relay-")', ""], "api/via/pass-through"),
  guard("via: fields that Connection names", ["|| named.has(name) ||", "||"], "api/via/pass-through"),
  guard(
    "via: the largest body, by its length",
    ["if (length !== undefined && length > options.maxBytes) throw tooLarge(options.maxBytes);", ""],
    "api/via/streams",
  ),
  guard(
    "via: the largest body, by what comes",
    ["if (this.taken > this.#options.maxBytes)", "if (false)"],
    "api/via/streams",
  ),
  guard(
    "via: back-pressure",
    ["if (this.#reader?.push(piece) === false) this.#request.pause();", "this.#reader?.push(piece);"],
    "api/via/streams",
  ),
  guard(
    "via: a longer body is not sent again",
    ["if (other === undefined || !mayRepeat(body)) {", "if (other === undefined) {"],
    "api/via/streams",
  ),
  guard("via: no other place at the relay", ["place.isRelay || way", "way"], "api/via/pass-through"),
  guard(
    "via: no redirect that carries the proof elsewhere",
    ["if (place.isOwn || !(place.isRelay || way.isProofCarried)) alsoKept", "if (!place.isRelay) alsoKept"],
    "api/via/pass-through",
  ),
  guard(
    "via: dot segments of a place",
    ["isKept && !DOT_SEGMENT.test(tail) ? tail", "isKept ? tail"],
    "api/via/pass-through",
  ),
  guard("via: nothing more is read before it is sent again", ["body?.hold();", ""], "api/via/streams"),
  guard(
    "via: the body is asked for by nobody but the one who reads it",
    [
      'if (expectation === "continue" && !asksItself(req.url ?? "")) res.writeContinue();',
      'if (expectation === "continue") res.writeContinue();',
    ],
    "api/via/streams",
  ),
  guard(
    "via: places through the relay",
    ["return { url: through, isOwn: true, isRelay: false };", "return { url: written, isOwn: true, isRelay: false };"],
    "api/via/pass-through",
  ),
];

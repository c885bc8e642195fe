/**
 * What a request's target may be read as by some server or other: written from what servers are known to do, and not
 * from the relay's own rules. Each step is one habit of one of them; readings are closed under all steps.
 */
const HABITS: ReadonlyArray<(path: string) => string> = [
  // Decoding all of it before routing, as often as a stack has layers that do.
  (path) => decodedOnce(path),
  // IIS.
  (path) => path.replace(/%u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
  // Overlong UTF-8, as old decoders take it.
  (path) =>
    path.replace(/%c0%(8|9|a|b)([0-9a-f])/gi, (_, high: string, low: string) =>
      String.fromCharCode(Number.parseInt(high + low, 16) - 0x80),
    ),
  // Windows, and the URL standard.
  (path) => path.replaceAll("\\", "/"),
  // Compatibility forms, and best fit of Windows code pages.
  (path) =>
    path
      .normalize("NFKC")
      .replace(/[\u2044\u2215\u29f8\u2571]/g, "/")
      .replace(/[\u2216\u29f5\u00a5\u20a9]/g, "\\"),
  // Parameters of a segment (Tomcat, Spring), and of the whole path (RFC 1808).
  (path) => path.replace(/;[^/]*/g, ""),
  (path) => path.replace(/;.*$/s, ""),
  // Merging slashes (nginx).
  (path) => path.replace(/\/{2,}/g, "/"),
  // RFC 3986 section 5.2.4.
  (path) => withoutDots(path),
  // C strings; a late look for query and fragment.
  (path) => path.replace(/\0.*$/s, ""),
  (path) => path.replace(/[?#].*$/s, ""),
  // What browsers and proxies drop, and what file systems do.
  (path) => path.replace(/[\t\n\r\u200b\u200c\u00ad\ufeff]|\u200d/g, ""),
  (path) => path.replace(/[\t\n\r].*$/s, ""),
  (path) =>
    path
      .split("/")
      .map((segment) => (/^\.{1,2}$/.test(segment) ? segment : segment.replace(/[. ]+$/, "")))
      .join("/"),
  (path) => path.replaceAll("+", " "),
  (path) =>
    path
      .split("/")
      .map((segment) => segment.trim())
      .join("/"),
];

const MAX_READINGS = 400;

/** Every reading of a path. */
export function readingsOf(path: string): ReadonlySet<string> {
  const readings = new Set([path]);
  for (const reading of readings) {
    if (readings.size > MAX_READINGS) break;
    for (const habit of HABITS) readings.add(habit(reading));
  }
  return readings;
}

/** Bytes that are no UTF-8 are read as latin1 by those who must read something. */
function decodedOnce(path: string): string {
  return path.replace(/(?:%[0-9a-f]{2})+/gi, (run) => {
    const bytes = Buffer.from(run.replaceAll("%", ""), "hex");
    const text = bytes.toString();
    return text.includes("\ufffd") ? bytes.toString("latin1") : text;
  });
}

function withoutDots(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split("/").slice(1)) {
    if (segment === "..") kept.pop();
    else if (segment !== ".") kept.push(segment);
  }
  return `/${kept.join("/")}`;
}

/** Whether a reading is inside of a pattern of plain segments. */
export function isInside(pattern: string, reading: string): boolean {
  const source = pattern
    .split("/")
    .slice(1)
    .map((segment) => (segment === "**" ? "(?:/[^/]+)*" : segment === "*" ? "/[^/]+" : `/${segment}`));
  return new RegExp(`^${source.join("")}$`, "s").test(reading);
}

/** Names that frameworks take a method from, after what PHP does to names of parameters. */
const OVERRIDES =
  /^(?:_?method|_?http_?method|_httpmethod|x[-_]http[-_]method(?:[-_]override)?|x[-_]method[-_]override|method[-_]override|\$method)$/i;
const METHODS = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$/;

/** Every method that a query may name in the place of the request's own. */
export function methodsReadFrom(query: string): ReadonlySet<string> {
  const methods = new Set<string>();
  for (const separator of [/&/, /[&;]/]) {
    for (const pair of query.split(separator)) {
      const [name = "", value = ""] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)];
      for (const read of decodings(name)) {
        for (const given of decodings(value)) {
          const known = read.trimStart().replace(/\[.*$/, "").replace(/[. ]/g, "_");
          const method = given.trim().toUpperCase();
          if (OVERRIDES.test(known) && METHODS.test(method)) methods.add(method);
        }
      }
    }
  }
  return methods;
}

function decodings(text: string): readonly string[] {
  const spaced = text.replaceAll("+", " ");
  const once = decodedOnce(spaced);
  return [spaced, once, decodedOnce(once)];
}

/** Node.js flags and variables that disable one of the relay's safeguards (threats N16, L06). */
export function runtimeProblems(
  env: Readonly<Record<string, string | undefined>>,
  execArgv: readonly string[],
): string[] {
  const flags = [...execArgv, ...(env["NODE_OPTIONS"] ?? "").split(/\s+/)];
  const has = (...names: string[]) =>
    flags.some((flag) => names.some((name) => flag === name || flag.startsWith(`${name}=`)));
  const problems: string[] = [];
  if (env["NODE_TLS_REJECT_UNAUTHORIZED"] === "0") {
    problems.push("NODE_TLS_REJECT_UNAUTHORIZED: 0 switches off the check of provider certificates; unset it");
  }
  if (has("--insecure-http-parser")) problems.push("--insecure-http-parser: accepts smuggled requests; remove it");
  if (has("--tls-keylog")) problems.push("--tls-keylog: writes the keys of provider connections to a file; remove it");
  if (/\*|\b(http|http2|undici|net|tls|stream|fetch)\b/i.test(env["NODE_DEBUG"] ?? "")) {
    problems.push("NODE_DEBUG: prints request headers, and with them tokens; unset it");
  }
  if (env["NODE_ENV"] === "production" && has("--inspect", "--inspect-brk", "--inspect-wait")) {
    problems.push("--inspect: lets anyone who reaches the inspector read tokens; not allowed with NODE_ENV=production");
  }
  return problems;
}

/**
 * What is wrong with the version of Node.js; undefined when nothing is. Some versions abort the process when SQLite is
 * opened (https://github.com/nodejs/node/issues/65446), after which nothing can be reported.
 *
 * @param version as `process.version`.
 * @param supported an npm range: alternatives of `^x.y.z`, `>=x.y.z` and `<x.y.z`.
 */
export function nodeProblem(version: string, supported: string): string | undefined {
  const alternatives = supported.split("||").map((bounds) => bounds.trim().split(/\s+/));
  if (alternatives.some((bounds) => bounds.every((bound) => holds(bound, version)))) return undefined;
  return `Node.js ${version.slice(1)} does not run this relay: install one of ${supported}`;
}

function holds(bound: string, version: string): boolean {
  const [, operator, least = ""] = /^(\^|>=|<)(.+)$/.exec(bound) ?? [];
  if (operator === undefined) return bound === "*";
  const [asked, given] = [ordinal(least), ordinal(version)];
  if (operator === "<") return given < asked;
  return given >= asked && (operator === ">=" || Math.floor(given / 1e6) === Math.floor(asked / 1e6));
}

/** Major, minor and patch as one number. */
function ordinal(version: string): number {
  const [, major, minor, patch] = /(\d+)\.(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) * 1e6 + Number(minor) * 1e3 + Number(patch);
}

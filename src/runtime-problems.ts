/** Switches of Node.js that take a guard of ours away (threats N16, L06). */
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
    problems.push("NODE_DEBUG: prints request headers, and so tokens; unset it");
  }
  if (env["NODE_ENV"] === "production" && has("--inspect", "--inspect-brk", "--inspect-wait")) {
    problems.push("--inspect: lets whoever reaches the inspector read tokens; not with NODE_ENV=production");
  }
  return problems;
}

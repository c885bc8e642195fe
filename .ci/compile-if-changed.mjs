// For `npm start` and `npm run demo`: compiles, and says so, unless dist/ is newer than all that it is made from.
import { spawn } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";

const SOURCES = [
  "src",
  "gen",
  "client",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "tsconfig.build.json",
  "tsconfig.browser.json",
];

const builtAt = existsSync("dist/built") ? statSync("dist/built").mtimeMs : 0;
if (SOURCES.some((path) => changedAt(path) > builtAt)) {
  process.stderr.write(
    "Compiling the service. This takes some seconds, and is done again only when the sources change.\n",
  );
  const build = spawn("npm", ["run", "--silent", "build"], { stdio: "inherit" });
  const isTerminal = process.stderr.isTTY === true;
  const show = () => process.stderr.write(`\rCompiling for ${Math.round(performance.now() / 1000)} s`);
  const timer = isTerminal ? setInterval(show, 1000) : undefined;
  build.on("exit", (status) => {
    clearInterval(timer);
    if (isTerminal) process.stderr.write("\r\x1b[K");
    process.exitCode = status ?? 1;
  });
}

/** When a file, or anything in a folder, was last changed; a folder's own time tells of files that were removed. */
function changedAt(path) {
  const { mtimeMs } = statSync(path);
  if (!path.includes(".")) {
    const within = readdirSync(path, { recursive: true, withFileTypes: true });
    return Math.max(mtimeMs, ...within.map(({ parentPath, name }) => statSync(`${parentPath}/${name}`).mtimeMs));
  }
  return mtimeMs;
}

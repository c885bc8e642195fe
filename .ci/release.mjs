// Says what a release would publish: both packages, in one version. Publishes nothing and needs no network.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const ARGUMENTS = ["publish", "--dry-run", "--offline", "--ignore-scripts", "--json"];

const packages = ["./", "./client/"].map((folder) => {
  const { status, stdout, stderr } = spawnSync("npm", [...ARGUMENTS, folder], { encoding: "utf8", maxBuffer: 2 ** 24 });
  if (status !== 0 || stderr.includes("auto-corrected")) {
    throw new Error(`npm would not publish ${folder} as it is:\n${stderr}`);
  }
  const said = JSON.parse(stdout);
  return said.id === undefined ? Object.values(said)[0] : said;
});
for (const { id, entryCount, size, unpackedSize } of packages) {
  process.stdout.write(`${id}: ${entryCount} files, ${kib(size)} packed, ${kib(unpackedSize)} unpacked\n`);
}

const versions = new Set(packages.map(({ version }) => version));
if (versions.size > 1) throw new Error(`The packages differ in their versions: ${[...versions].join(", ")}.`);
const [version] = versions;
if (!readFileSync("CHANGELOG.md", "utf8").includes(`\n## ${version} - `)) {
  process.stdout.write(`CHANGELOG.md has no section for ${version} yet: rename "Unreleased" to "${version} - DATE".\n`);
}

function kib(bytes) {
  return `${Math.ceil(bytes / 1024).toLocaleString("en")} KiB`;
}

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect, it } from "vitest";

/** What `npm pack` would put into the package of a folder. */
async function packedFiles(cwd: string): Promise<readonly string[]> {
  const args = ["pack", "--ignore-scripts", "--dry-run", "--json"];
  const { stdout } = await promisify(execFile)("npm", args, { cwd });
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  return files.map(({ path }) => path);
}

const readManifest = (path: string) => JSON.parse(readFileSync(path, "utf8"));

it("the service's package has what an operator needs, and nothing else", async () => {
  const files = await packedFiles(".");
  expect(files).toEqual(expect.arrayContaining(["LICENSE", "README.md", "SECURITY.md"]));
  expect(files).toEqual(expect.arrayContaining(["dist/src/cli/relay.js", "dist/src/providers/catalog/github.json"]));
  const strange = files.filter((path) => !/^(dist\/(src|gen)\/|docs\/|[A-Z]+(\.md)?$|package\.json$)/.test(path));
  expect(strange).toEqual([]);
  expect(files.filter((path) => /(^|\/)(test|node_modules|data)\/|\.(db|key|pem)$/.test(path))).toEqual([]);
});

it("the callers' package has client and contract alone, and leaves the versions of its peers to the caller", async () => {
  const files = await packedFiles("client");
  const strange = files.filter(
    (path) =>
      !/^(lib\/[a-z]+\.(js|js\.map|d\.ts)$|(gen|proto)\/(relay|google\/api)\/|(LICENSE|README\.md|package\.json)$)/.test(
        path,
      ),
  );
  expect(strange).toEqual([]);
  const manifest = readManifest("client/package.json");
  expect(Object.keys(manifest.dependencies)).toEqual(["standardwebhooks"]);
  expect(Object.keys(manifest.peerDependenciesMeta)).toEqual(Object.keys(manifest.peerDependencies));
  const { dependencies } = readManifest("package.json");
  for (const [name, range] of Object.entries(manifest.peerDependencies)) expect(range).toBe(`^${dependencies[name]}`);
});

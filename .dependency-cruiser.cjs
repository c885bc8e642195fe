/**
 * Who may import whom in src/: each folder those to its left, and nothing else. `npm run lint` holds it.
 */
const FOLDERS = [
  "lib",
  "model",
  ["json", "redaction", "sealing", "telemetry", "sandbox"],
  ["http", "upstream", "providers", "applications"],
  "oauth",
  "webhooks",
  "records",
  "config",
  ["store", "call", "pages", "workers"],
  "api/rpc",
  ["api/rest", "api/fast"],
  ["api/via", "api/mcp"],
  "admin",
  "app",
  "cli",
];
/** The only ones that know the store. */
const OF_THE_STORE = ["app", "cli"];
/** The only ones that know the generated code. */
const OF_THE_CONTRACT = ["providers", "api/rest", "api/rpc", "api/fast", "api/mcp", "admin", "app", "cli"];

const pathOf = (folders) => `^src/(?:${folders.flat().join("|")})/`;
const error = (name, from, to) => ({ name, severity: "error", from, to });

module.exports = {
  forbidden: [
    error("no circles", {}, { circular: true }),
    error("nothing is left over", { orphan: true, path: "^src/", pathNot: "/(?:wasm|console)/|^src/main" }, {}),
    error("every file has its folder", { path: "^src/[^/]+$", pathNot: "^src/main[.]ts$" }, {}),
    ...FOLDERS.flatMap((group, at) =>
      [group].flat().map((folder) => {
        const right = [
          ...FOLDERS.slice(at)
            .flat()
            .filter((other) => other !== folder),
          "console",
        ];
        return error(`${folder} is left of those`, { path: pathOf([folder]) }, { path: pathOf(right) });
      }),
    ),
    error(
      "the store is wired in by app and cli alone",
      { path: "^src/", pathNot: pathOf(["store", ...OF_THE_STORE]) },
      { path: "^src/store/" },
    ),
    error(
      "the contract is known to the surfaces alone",
      { path: "^src/", pathNot: pathOf([...OF_THE_CONTRACT, "console"]) },
      { path: "^gen/" },
    ),
    error(
      "the console runs in a browser and uses the types of the contract alone",
      { path: "^src/console/" },
      { path: "^(?:src/(?!console/)|gen/)", dependencyTypesNot: ["type-only"] },
    ),
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: { extensions: [".ts", ".js"] },
  },
};

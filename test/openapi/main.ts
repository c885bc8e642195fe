import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createAdminDocument } from "./admin-document.js";
import { createDocument } from "./document.js";
import { readSchema } from "./registry.js";

/** Writes openapi.json and openapi-admin.json from proto/: `npm run openapi [-- --output FOLDER]`. */
const { values } = parseArgs({ options: { output: { type: "string", default: "docs" } } });
const schema = readSchema();
for (const [name, document] of [
  ["openapi.json", createDocument(schema)],
  ["openapi-admin.json", createAdminDocument(schema)],
] as const) {
  writeFileSync(join(values.output, name), `${JSON.stringify(document, undefined, 2)}\n`);
}

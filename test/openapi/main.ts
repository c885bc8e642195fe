import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { createDocument } from "./document.js";
import { readSchema } from "./registry.js";

/** Writes docs/openapi.json from proto/: `npm run openapi [-- --output FILE]`. */
const { values } = parseArgs({ options: { output: { type: "string", default: "docs/openapi.json" } } });
writeFileSync(values.output, `${JSON.stringify(createDocument(readSchema()), undefined, 2)}\n`);

#!/usr/bin/env node
import { endWithReader } from "./output.js";
import { runCommand } from "./program.js";

endWithReader();
process.exitCode = await runCommand(process.argv.slice(2));

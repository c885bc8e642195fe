#!/usr/bin/env node
import { nodeProblem } from "../config/runtime-problems.js";
import { supportedNode } from "../lib/process.js";

const problem = nodeProblem(process.version, supportedNode());
if (problem === undefined) {
  const { runCommand } = await import("./program.js");
  process.exitCode = await runCommand(process.argv.slice(2));
} else {
  process.stderr.write(`${problem}\n`);
  process.exitCode = 1;
}

import { runService } from "../../src/main.js";

// `relay serve` without the command line, which reads files of the built package.
process.exitCode = await runService(process.env, process.execArgv);

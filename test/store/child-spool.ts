import { openSpool } from "../../src/store/spool.js";
import { ANSWER } from "./spool-for-test.js";

/** Keeps an answer, or nothing, in a spool of its own, and lives until it is killed. */
const [folder = "", store = "", content = "an answer"] = process.argv.slice(2);
const fail = () => process.exit(1);
const spool = openSpool({ folder, store: { id: store, path: undefined }, onFault: fail, onLeft: fail });
if (content !== "nothing") spool.keep(ANSWER);
process.stdout.write(`owner ${spool.owner}\n`);
setInterval(() => {}, 60_000);

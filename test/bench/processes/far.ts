import { connect, createServer, type Socket } from "node:net";
import { ONE_WAY_MS } from "./content.js";
import { announce } from "./serve.js";

/** The provider (`PROVIDER_PORT`) as if it were far away: what is sent arrives later, and so does a new connection. */
const port = Number(process.env["PROVIDER_PORT"]);

function pass(from: Socket, to: Socket, openAt: number): void {
  const arrives = (then: () => void) => setTimeout(then, Math.max(ONE_WAY_MS, openAt + ONE_WAY_MS - performance.now()));
  from.on("data", (chunk: Buffer) => arrives(() => to.write(chunk)));
  from.on("end", () => arrives(() => to.end()));
  from.on("error", () => to.destroy());
}

const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
  const far = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  // Nothing can be sent before the answer to the first packet of TCP is here.
  pass(near, far, performance.now() + 2 * ONE_WAY_MS);
  pass(far, near, 0);
});
server.listen(0, "127.0.0.1", () => announce(server.address()));

import { connect } from "node:net";

/** Sends bytes as they are and resolves to what came back until the other side closed. */
export function exchange(origin: string, text: string): Promise<string> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(text, "latin1"));
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
    });
    // A reset is one of the ends this helper waits for.
    socket.on("error", () => {});
    socket.on("close", () => resolve(received));
  });
}

import { connect, type Socket } from "node:net";

/** Clients that send one byte a second and never finish. */
export interface SlowLoris {
  /** Connections that are open now. */
  held(): number;
  /** Connections opened since the start: the relay cuts them, and they come again. */
  opened(): number;
  stop(): void;
}

const RECONNECT_MS = 100;

/** Half of them never finish their header section, the other half never finish their body. */
export function startSlowLoris(port: number, count: number): SlowLoris {
  const sockets = new Set<Socket>();
  let opened = 0;
  let isStopped = false;
  const open = (kind: number) => {
    if (isStopped) return;
    opened++;
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => {
      sockets.add(socket);
      socket.write(kind % 2 === 0 ? HEADERS : BODY);
    });
    socket.on("error", () => {
      // A reset is one of the ways to be cut; 'close' follows.
    });
    socket.resume();
    socket.on("close", () => {
      sockets.delete(socket);
      setTimeout(open, RECONNECT_MS, kind).unref();
    });
  };
  for (let kind = 0; kind < count; kind++) open(kind);
  const timer = setInterval(() => {
    for (const socket of sockets) if (socket.writable) socket.write("x");
  }, 1000);
  return {
    held: () => sockets.size,
    opened: () => opened,
    stop() {
      isStopped = true;
      clearInterval(timer);
      for (const socket of sockets) socket.destroy();
    },
  };
}

const TARGET = "POST /oauth/method/normal/call?user_id=u&public_key=x HTTP/1.1\r\nHost: relay.test\r\n";
const HEADERS = `${TARGET}X-Slow: `;
const BODY = `${TARGET}Content-Length: 100000\r\n\r\n`;

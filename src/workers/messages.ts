/** Where a service listens. */
export interface ServiceUrls {
  readonly url: string;
  /** The administration port; undefined where it is switched off. */
  readonly adminUrl: string | undefined;
}

/** What a worker tells its supervisor: it serves. */
export interface StartedMessage extends ServiceUrls {
  readonly type: "started";
}

/** What a supervisor tells a worker: to finish what it has and end. */
export interface StopMessage {
  readonly type: "stop";
  /** How long connections that rest are kept, in milliseconds. */
  readonly quietMs: number;
}

/** What a worker tells its supervisor every few seconds: its event loop turns. */
export interface PulseMessage {
  readonly type: "pulse";
}

/** Other messages of the cluster module pass by on the same channel. */
export function isStarted(message: unknown): message is StartedMessage {
  return typeOf(message) === "started";
}

export function isStop(message: unknown): message is StopMessage {
  return typeOf(message) === "stop";
}

export function isPulse(message: unknown): message is PulseMessage {
  return typeOf(message) === "pulse";
}

function typeOf(message: unknown): unknown {
  return typeof message === "object" && message !== null && "type" in message ? message.type : undefined;
}

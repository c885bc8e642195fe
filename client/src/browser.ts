/** How connecting in a window of its own ended. */
export type ConnectResult =
  | { readonly outcome: "success"; readonly provider: string }
  /** `error` is a code of RFC 6749 sections 4.1.2.1 and 5.2, such as `access_denied`, or the relay's own in the same spelling. */
  | { readonly outcome: "error"; readonly provider: string; readonly error: string }
  /** `blocked`: the browser let no window open. `closed`: the window is gone, and nobody said how it ended. */
  | { readonly outcome: "blocked" | "closed" | "timeout" };

/** What to connect, and how long to wait. */
export interface ConnectAccountOptions {
  /**
   * Address of the relay's connect page, such as the `connectUri` of a connect link. For a promise the window is opened at
   * once, since a browser lets a page open one only for a moment after a click.
   */
  readonly link: string | PromiseLike<string>;
  /** 900,000 unless given, in milliseconds: as long as a link can be opened. */
  readonly timeoutMs?: number;
}

/**
 * Opens the relay's connect page in a window of its own, and resolves with how it ended; to be called in the handler of a
 * click. The origin of the page that calls must be on the application's list of allowed origins.
 *
 * `closed` may also come after success: a provider's page can cut the tie between the two windows
 * (`Cross-Origin-Opener-Policy`). Then ask for the user's connections.
 *
 * @throws TypeError for a link that is no web address, and whatever its promise rejects with.
 */
export async function connectAccount({ link, timeoutMs = 900_000 }: ConnectAccountOptions): Promise<ConnectResult> {
  const popup = window.open("about:blank", "_blank", "popup,width=520,height=720");
  if (popup === null) return { outcome: "blocked" };
  try {
    return await untilEnded(popup, link, timeoutMs);
  } finally {
    popup.close();
  }
}

/** `type` of the relay's message. */
const MESSAGE_TYPE = "provider-call-relay.connect";
/** No event tells that another window was closed. */
const LOOK_EVERY_MS = 300;

/** From the first moment on: the link may come late, or never. */
function untilEnded(popup: Window, link: ConnectAccountOptions["link"], timeoutMs: number): Promise<ConnectResult> {
  const ended = new AbortController();
  return new Promise<ConnectResult>((resolve, reject) => {
    let relayOrigin: string | undefined;
    const onMessage = ({ origin, source, data }: MessageEvent) => {
      if (origin !== relayOrigin || source !== popup || data?.type !== MESSAGE_TYPE) return;
      const { outcome, provider, error } = data;
      resolve(outcome === "success" ? { outcome, provider } : { outcome: "error", provider, error });
    };
    window.addEventListener("message", onMessage, { signal: ended.signal });
    const timer = setTimeout(() => resolve({ outcome: "timeout" }), timeoutMs);
    let wasClosed = false;
    const watch = setInterval(() => {
      // A message may be on its way still. A window whose tie was cut seems closed, too, while the user is in it.
      if (wasClosed && document.hasFocus()) resolve({ outcome: "closed" });
      wasClosed = popup.closed;
    }, LOOK_EVERY_MS);
    ended.signal.addEventListener("abort", () => {
      clearTimeout(timer);
      clearInterval(watch);
    });
    const open = (address: string) => {
      const url = new URL(address);
      if (!/^https?:$/.test(url.protocol)) throw new TypeError("The link is no web address.");
      url.searchParams.set("opener_origin", location.origin);
      relayOrigin = url.origin;
      if (!ended.signal.aborted) popup.location.replace(url);
    };
    Promise.resolve(link).then(open).catch(reject);
  }).finally(() => ended.abort());
}

/** Outcome of connecting in a popup window. */
export type ConnectResult =
  | { readonly outcome: "success"; readonly provider: string }
  /** `error` is a code of RFC 6749 sections 4.1.2.1 and 5.2, such as `access_denied`, or one of the relay's own. */
  | { readonly outcome: "error"; readonly provider: string; readonly error: string }
  /** `blocked`: the browser blocked the popup. `closed`: the window was closed and no outcome was reported. */
  | { readonly outcome: "blocked" | "closed" | "timeout" };

/** What to connect, and how long to wait. */
export interface ConnectAccountOptions {
  /**
   * Address of the relay's connect page, such as the `connectUri` of a connect link. May be a promise: the window opens
   * at once, since browsers allow popups only for a moment after a click.
   */
  readonly link: string | PromiseLike<string>;
  /** Milliseconds. Default: 900,000, as long as a link can be opened. */
  readonly timeoutMs?: number;
}

/**
 * Opens the relay's connect page in a popup window and resolves with the outcome. Call it in a click handler. The
 * origin of the calling page must be on the application's list of allowed origins.
 *
 * `closed` can also follow a success, since a provider's page can sever the link between the two windows
 * (`Cross-Origin-Opener-Policy`). Then list the user's connections to find out.
 *
 * @throws TypeError if the link is not an http(s) URL, and whatever the link's promise rejects with.
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
/** Polling interval in milliseconds: there is no event for another window being closed. */
const LOOK_EVERY_MS = 300;

/** Listens from the start, since the link's promise may resolve late or never. */
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
      // Waits one more tick, since a message may still be on its way. A severed window also looks closed while the user
      // is still in it, hence the focus check.
      if (wasClosed && document.hasFocus()) resolve({ outcome: "closed" });
      wasClosed = popup.closed;
    }, LOOK_EVERY_MS);
    ended.signal.addEventListener("abort", () => {
      clearTimeout(timer);
      clearInterval(watch);
    });
    const open = (address: string) => {
      const url = new URL(address);
      if (!/^https?:$/.test(url.protocol)) throw new TypeError("The link is not an http or https URL.");
      url.searchParams.set("opener_origin", location.origin);
      relayOrigin = url.origin;
      if (!ended.signal.aborted) popup.location.replace(url);
    };
    Promise.resolve(link).then(open).catch(reject);
  }).finally(() => ended.abort());
}

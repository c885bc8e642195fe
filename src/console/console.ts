import { createApi, endSession, openSession, redeemSignInSecret, takeSignInSecret, tokenStorage } from "./api.js";
import { createApplicationView } from "./application-view.js";
import { createApplicationsView } from "./applications-view.js";
import { createAuditView } from "./audit-view.js";
import { createCallView } from "./call-view.js";
import { createCallsView } from "./calls-view.js";
import { createClientsView } from "./clients-view.js";
import { createConnectionView } from "./connection-view.js";
import { createConnectionsView } from "./connections-view.js";
import { createDirectory } from "./directory.js";
import { createFiguresView } from "./figures-view.js";
import { createFindView, findBox } from "./find-view.js";
import { createLinkView } from "./link-view.js";
import { html, nothing, render, type TemplateResult } from "./lit-html.js";
import { createLiveView } from "./live-view.js";
import { ApiError, createLoader, type Loading } from "./loading.js";
import { createProvidersView } from "./providers-view.js";
import { createStartView } from "./start-view.js";
import { visibleText } from "./text.js";
import { createTokenView } from "./token-view.js";
import { createTryView } from "./try-view.js";
import { busyNotice, NARROW, problemNotice, type View, type ViewContext } from "./view.js";
import { createWebhookView } from "./webhook-view.js";

/** Content of the window: the sign-in form, or the console itself. */
interface Screen {
  render(): TemplateResult;
  /** Releases timers and listeners. */
  close(): void;
}

/** Runs the console in an element of the page. Uses the session token of this tab if it has one. */
function createConsole(root: HTMLElement): void {
  let screen: Screen | undefined;
  let isDue = false;

  /** Renders once for all changes of one event loop turn. */
  function update(): void {
    if (isDue) return;
    isDue = true;
    queueMicrotask(() => {
      isDue = false;
      if (screen !== undefined) render(screen.render(), root);
    });
  }

  function show(next: Screen): void {
    screen?.close();
    screen = next;
    update();
  }

  function askToSignIn(told: Pick<SignInOptions, "problem" | "status">): void {
    show(createSignIn({ update, signIn, ...told }));
  }

  /** Call it only once the session has ended at the relay: without the token it could not be ended any more. */
  function leave(told: Pick<SignInOptions, "problem" | "status">): void {
    tokenStorage.clear();
    askToSignIn(told);
    // The focused element is gone. The token field's description says what has just happened.
    queueMicrotask(() => document.querySelector<HTMLElement>("#token")?.focus());
  }

  /** @param token session token; kept even while the relay cannot say whether it is still valid. */
  async function open(token: string): Promise<void> {
    tokenStorage.write(token);
    const ending = createLoader<void>(update);
    const signOut: SignOut = {
      ending,
      /** Ends the session at the relay, so that copies of the token stop working too. */
      start: () =>
        ending.load(async () => {
          await endSession(token);
          leave({ status: "You are signed out. The relay no longer accepts this session." });
        }),
    };
    // A late 401 must not end a newer session. While this session is being ended, that request reports the outcome.
    const isCurrent = () => tokenStorage.read() === token && !ending.isBusy;
    const api = createApi(token, () => isCurrent() && leave({ problem: SESSION_ENDED }));
    try {
      const session = await openSession(api);
      show(createShell({ api, session, update, directory: createDirectory(api, update) }, signOut));
    } catch (error) {
      const problem = error instanceof ApiError ? error.message : String(error);
      if (!isRefused(error)) show(createUnknown({ update, problem, signOut, retry: () => open(token) }));
    }
  }

  /** @param token an admin token, which is not kept. Rejects with ApiError when the relay refuses it. */
  async function signIn(token: string): Promise<void> {
    const session = await redeemSignInSecret(token).catch((error: unknown) => {
      throw isRefused(error) ? new ApiError("unauthenticated", UNKNOWN_TOKEN) : error;
    });
    await open(session);
  }

  matchMedia(NARROW).addEventListener("change", update);
  // Opening a sign-in link in a tab that already shows the console changes only the hash: reload to use the link.
  addEventListener("hashchange", () => location.hash.startsWith("#sign-in=") && location.reload());
  root.replaceChildren();
  const [secret, token] = [takeSignInSecret(), tokenStorage.read()];
  if (secret !== undefined)
    redeemSignInSecret(secret)
      .then(open)
      .catch(({ message }: Error) => askToSignIn({ problem: message }));
  else if (token === undefined) askToSignIn({});
  else void open(token);
}

const SESSION_ENDED = "This session has ended. Sign in again.";
/** Replaces the API's message about a wrong token, which is written for developers. */
const UNKNOWN_TOKEN =
  "The relay does not know this token. Check that you copied the whole last word of a line; tokens added to the file take effect after a restart.";

function isRefused(error: unknown): boolean {
  return error instanceof ApiError && error.code === "unauthenticated";
}

/** Ends the session at the relay, and the state of that request. */
interface SignOut {
  readonly ending: Loading<void>;
  start(): Promise<unknown>;
}

function signOutButton({ ending, start }: SignOut): TemplateResult {
  return html`<button type="button" ?disabled=${ending.isBusy} @click=${start}>Sign out</button>`;
}

/** Shown when the relay cannot say whether the session of this tab is still valid. */
function createUnknown(options: {
  readonly update: () => void;
  readonly problem: string;
  readonly signOut: SignOut;
  readonly retry: () => Promise<void>;
}): Screen {
  const { update, problem, signOut, retry } = options;
  const attempt = createLoader<void>(update);
  document.title = "Relay console";
  return {
    render: () => html`<main class="narrow">
      <h1>Relay console</h1>
      ${problemNotice({ problem: attempt.isBusy ? undefined : (signOut.ending.problem ?? problem) })}
      <p>This tab still has its session.</p>
      <p class="actions">
        <button type="button" class="main" ?disabled=${attempt.isBusy} @click=${() => attempt.load(retry)}>Try again</button>
        ${signOutButton(signOut)}
      </p>
      ${busyNotice(attempt)}
    </main>`,
    close() {},
  };
}

/** Options of {@link createSignIn}. */
interface SignInOptions {
  readonly update: () => void;
  /** Rejects with ApiError when the relay refuses the token. */
  readonly signIn: (token: string) => Promise<void>;
  /** Error that led back to this form. */
  readonly problem?: string;
  /** What has just happened. */
  readonly status?: string;
}

/** The sign-in form. The typed token is sent to the relay only and never rendered. */
function createSignIn({ update, signIn, problem, status = "" }: SignInOptions) {
  const attempt = createLoader<void>(update);
  document.title = "Sign in – Relay console";

  function submit(event: SubmitEvent): void {
    event.preventDefault();
    const input = (event.currentTarget as HTMLFormElement).querySelector("input");
    const token = input?.value.trim() ?? "";
    if (token === "") input?.focus();
    else void attempt.load(() => signIn(token));
  }

  return {
    render: () => html`<main class="narrow">
      <h1>Relay console</h1>
      <p role="status" id="token-status">${attempt.isBusy ? "" : status}</p>
      <form @submit=${submit}>
        <label for="token">Admin token</label>
        <input id="token" type="password" autocomplete="off" spellcheck="false" required aria-describedby="token-status token-hint" />
        <p class="hint" id="token-hint">
          A token from the file named by <code>RELAY_ADMIN_TOKEN_FILE</code> (<code>data/admin.tokens</code>): the last
          word of a line. It is not stored: this tab gets a session of 12 hours, and signing out ends the session and
          every copy of it. <code>relay console</code> prints a link that signs you in without a token.
        </p>
        <button type="submit" class="main" ?disabled=${attempt.isBusy}>Sign in</button>
      </form>
      ${busyNotice(attempt)} ${problemNotice({ problem: attempt.problem ?? (attempt.isBusy ? undefined : problem) })}
    </main>`,
    close() {},
  };
}

/** The console after sign-in: navigation, and the view that the address names. */
function createShell(context: ViewContext, signOut: SignOut): Screen {
  const views: ReadonlyMap<string, View> = new Map([
    ["start", createStartView(context)],
    ["figures", createFiguresView(context)],
    ["live", createLiveView(context)],
    ["calls", createCallsView(context)],
    ["connections", createConnectionsView(context)],
    ["applications", createApplicationsView(context)],
    ["providers", createProvidersView(context)],
    ["audit", createAuditView(context)],
    ["try", createTryView(context)],
  ]);
  /** Detail views, not in the navigation: other views link to them. */
  const details: ReadonlyMap<string, View> = new Map([
    ["find", createFindView(context)],
    ["call", createCallView(context)],
    ["application", createApplicationView(context)],
    ["clients", createClientsView(context)],
    ["connection", createConnectionView(context)],
    ["link", createLinkView(context)],
    ["token", createTokenView(context)],
    ["webhook", createWebhookView(context)],
  ]);
  let current: View | undefined;

  function follow(): void {
    const [name = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
    const next = views.get(name) ?? details.get(name) ?? (views.get("start") as View);
    // After another search the focus stays in the search form.
    const isSame = next === current && next.staysInPlace === true;
    // Also before another search: nothing that answers the one before may be shown under this one.
    current?.leave(next === current);
    context.directory.askAgain();
    const isFirst = current === undefined;
    current = next;
    next.enter(new URLSearchParams(query));
    document.title = `${next.title} – Relay console`;
    context.update();
    queueMicrotask(() => {
      // On a phone the navigation is one line that scrolls sideways.
      for (const each of document.querySelectorAll<HTMLElement>("nav [aria-current=page]")) {
        const list = each.closest("ul");
        // Not scrollIntoView(), which would also move the starting point of Tab navigation here.
        list?.scrollTo({ left: each.offsetLeft - list.offsetLeft - (list.clientWidth - each.offsetWidth) / 2 });
      }
      // Move the focus to the heading, so that screen readers continue here as after a page load.
      if (!isFirst && !isSame) document.querySelector<HTMLElement>("h1")?.focus();
    });
  }

  addEventListener("hashchange", follow);
  follow();
  return {
    render: () => html`<a class="skip" href="#content" @click=${skipTo}>Skip to the content</a>
      ${header(context, views, current, signOut)}
      <main id="content" tabindex="-1">${current?.render()}</main>`,
    close() {
      removeEventListener("hashchange", follow);
      current?.leave(false);
    },
  };
}

/** Moves the focus by script: the hash of the address names the view, so it cannot name an element. */
function skipTo(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#content")?.focus();
}

function header(
  { session }: ViewContext,
  views: ReadonlyMap<string, View>,
  current: View | undefined,
  signOut: SignOut,
): TemplateResult {
  const role = session.mayPerform ? "operator" : "read-only";
  return html`<header>
    <p class="product">Relay console</p>
    ${findBox()}
    <p class="who">
      <span>${visibleText(session.operatorName)} (${role})</span>
      ${signOutButton(signOut)}
    </p>
    ${signOut.ending.problem === undefined ? nothing : problemNotice(signOut.ending)}
    <nav aria-label="Views">
      <ul>
        ${[...views].map(
          ([name, view]) =>
            html`<li><a href="#/${name}" aria-current=${view === current ? "page" : "false"}>${view.title}</a></li>`,
        )}
      </ul>
    </nav>
  </header>`;
}

const root = document.querySelector<HTMLElement>("#console");
if (root !== null) createConsole(root);

import { html } from "./lit-html.js";
import { createLoader } from "./loading.js";
import { busyNotice, problemNotice } from "./notices.js";

/** What signing in needs. */
export interface SignInOptions {
  readonly update: () => void;
  /** Rejects with ApiError when the token is not taken. */
  readonly signIn: (token: string) => Promise<void>;
  /** Why the form is shown again. */
  readonly problem: string | undefined;
}

/** The form for an admin token. What is typed goes to the relay alone, and not into the page. */
export function createSignIn({ update, signIn, problem }: SignInOptions) {
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
      <form @submit=${submit}>
        <label for="token">Admin token</label>
        <input id="token" type="password" autocomplete="off" spellcheck="false" required aria-describedby="token-hint" />
        <p class="hint" id="token-hint">
          One of the file that <code>RELAY_ADMIN_TOKEN_FILE</code> names (<code>data/admin.tokens</code>): the last word
          of a line. It stays in this tab and is forgotten with it.
        </p>
        <button type="submit" class="main" ?disabled=${attempt.isBusy}>Sign in</button>
      </form>
      ${busyNotice(attempt)} ${problemNotice({ problem: attempt.problem ?? (attempt.isBusy ? undefined : problem) })}
    </main>`,
    close() {},
  };
}

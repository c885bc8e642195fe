import { createApi } from "./api.js";
import { ApiError } from "./api-error.js";
import { render, type TemplateResult } from "./lit-html.js";
import { openSession } from "./session.js";
import { createShell } from "./shell.js";
import { createSignIn } from "./sign-in.js";
import { tokenStorage } from "./token-storage.js";

/** What fills the window: the form for the token, or everything behind it. */
export interface Screen {
  render(): TemplateResult;
  /** Lets go of timers and listeners. */
  close(): void;
}

/** Runs the console in an element of the page. A token that this tab has already is used without asking. */
export function createConsole(root: HTMLElement): void {
  let screen: Screen | undefined;
  let isDue = false;

  /** Once for all changes of one turn. */
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

  function signOut(problem?: string): void {
    tokenStorage.clear();
    show(createSignIn({ update, signIn, problem }));
  }

  /** Rejects with ApiError when the token is not taken. */
  async function signIn(token: string): Promise<void> {
    let isOpen = false;
    const api = createApi(token, () => isOpen && signOut("This admin token is not taken any more. Sign in again."));
    const session = await openSession(api).catch((error: unknown) => {
      throw refusedToken(error);
    });
    isOpen = true;
    tokenStorage.write(token);
    show(createShell({ api, session, update }, () => signOut()));
  }

  root.replaceChildren();
  const token = tokenStorage.read();
  if (token === undefined) signOut();
  else signIn(token).catch((error: Error) => signOut(error.message));
}

/** What the API says of a wrong token is for those who write requests. */
function refusedToken(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.code !== "unauthenticated") return error;
  return new ApiError(
    error.code,
    "The relay does not know this token. Check that you copied the whole last word of a line; tokens that were added to the file count after a restart.",
  );
}

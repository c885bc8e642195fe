import { createApplicationsView } from "./applications-view.js";
import { createCallView } from "./call-view.js";
import { createConnectionsView } from "./connections-view.js";
import { html, type TemplateResult } from "./lit-html.js";
import { createLiveView } from "./live-view.js";
import { createProvidersView } from "./providers-view.js";
import { visibleText } from "./text.js";
import { createTryView } from "./try-view.js";
import type { View, ViewContext } from "./view.js";

/** Everything behind the sign-in: navigation, and the view that the address names. */
export function createShell(context: ViewContext, signOut: () => void) {
  const views: ReadonlyMap<string, View> = new Map([
    ["live", createLiveView(context)],
    ["connections", createConnectionsView(context)],
    ["applications", createApplicationsView(context)],
    ["providers", createProvidersView(context)],
    ["try", createTryView(context)],
  ]);
  /** Views of one thing, to which others lead. */
  const details: ReadonlyMap<string, View> = new Map([["call", createCallView(context)]]);
  let current: View | undefined;

  function follow(): void {
    const [name = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
    const next = views.get(name) ?? details.get(name) ?? (views.get("live") as View);
    if (next !== current) current?.leave();
    const isFirst = current === undefined;
    current = next;
    next.enter(new URLSearchParams(query));
    document.title = `${next.title} – Relay console`;
    context.update();
    // A screen reader reads on from here, as after the load of a page.
    if (!isFirst) queueMicrotask(() => document.querySelector<HTMLElement>("h1")?.focus());
  }

  addEventListener("hashchange", follow);
  follow();
  return {
    render: () => html`<a class="skip" href="#content" @click=${skipTo}>Skip to the content</a>
      ${header(context, views, current, signOut)}
      <main id="content" tabindex="-1">${current?.render()}</main>`,
    close() {
      removeEventListener("hashchange", follow);
      current?.leave();
    },
  };
}

/** The address names the view, so that a link within it cannot. */
function skipTo(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#content")?.focus();
}

function header(
  { session }: ViewContext,
  views: ReadonlyMap<string, View>,
  current: View | undefined,
  signOut: () => void,
): TemplateResult {
  const role = session.mayPerform ? "operator" : "read-only";
  return html`<header>
    <p class="product">Relay console</p>
    <nav aria-label="Views">
      <ul>
        ${[...views].map(
          ([name, view]) =>
            html`<li><a href="#/${name}" aria-current=${view === current ? "page" : "false"}>${view.title}</a></li>`,
        )}
      </ul>
    </nav>
    <p class="who">
      <span>${visibleText(session.operatorName)} (${role})</span>
      <button type="button" @click=${signOut}>Sign out</button>
    </p>
  </header>`;
}

import type { ApplicationJson } from "../../gen/relay/admin/v1/application_pb.js";
import type {
  Attention_KindJson,
  AttentionJson,
  GetFiguresResponseJson,
  OverviewJson,
} from "../../gen/relay/admin/v1/overview_pb.js";
import type { Api } from "./api.js";
import { applicationLink, type Directory } from "./directory.js";
import { figureTable } from "./figures-view.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createLoader } from "./loading.js";
import { addressOf, countText, visibleText } from "./text.js";
import { answerView, lasting, stateMark, type View, type ViewContext } from "./view.js";

/** Refresh interval while the view is shown, in milliseconds. */
const EVERY_MS = 60_000;

/** Start page: what needs attention, and the figures of the last hour. */
export function createStartView({ api, directory, update }: ViewContext): View {
  const overview = createLoader<OverviewJson>(update);
  const figures = createLoader<GetFiguresResponseJson>(update);
  const begun = createLoader<Begun>(update);
  let timer: ReturnType<typeof setInterval> | undefined;

  function load(): void {
    void overview.load(() => api.call("OverviewService/GetOverview", {}));
    void figures.load(() => api.call("OverviewService/GetFigures", { period: "PERIOD_HOUR" }));
    void begun.load(() => lookHowFar(api));
  }

  return {
    title: "Start",
    enter() {
      load();
      timer = setInterval(load, EVERY_MS);
    },
    leave() {
      clearInterval(timer);
      overview.clear();
      figures.clear();
      begun.clear();
    },
    render: () => html`<h1 tabindex="-1">Start</h1>
      ${begun.value === undefined ? nothing : firstSteps(begun.value)}
      <section aria-labelledby="attention">
        <h2 id="attention">What needs attention</h2>
        ${answerView(overview, (value) => attentionList(value, directory))}
      </section>
      <section aria-labelledby="hour">
        <h2 id="hour">The last hour</h2>
        ${answerView(figures, figureTable)}
        <p class="actions"><a href="#/figures">All figures</a> <a href="#/calls">Recorded calls, and why they failed</a></p>
      </section>
      ${overview.value === undefined ? nothing : html`<p class="hint">Relay ${visibleText(overview.value.version ?? "")} on Node.js ${visibleText(overview.value.nodeVersion ?? "")}.</p>`}`,
  };
}

/** What a new relay has so far: shows how far its setup has come. */
interface Begun {
  readonly applications: readonly ApplicationJson[];
  readonly hasClient: boolean;
  readonly hasConnection: boolean;
}

/** Looks at the first application only; with two or more, setup counts as done. Rejects with ApiError. */
async function lookHowFar(api: Api): Promise<Begun> {
  const { applications = [] } = await api.call("ApplicationService/ListApplications", { pageSize: 2 });
  const [{ publicKey = "" } = {}, ...others] = applications;
  if (publicKey === "" || others.length > 0) return { applications, hasClient: false, hasConnection: false };
  const request = { publicKey, pageSize: 1 };
  const [{ oauthClients = [] }, { connections = [] }] = await Promise.all([
    api.call("OAuthClientService/ListOAuthClients", request),
    api.call("ConnectionService/ListConnections", request),
  ]);
  return { applications, hasClient: oauthClients.length > 0, hasConnection: connections.length > 0 };
}

/** Setup steps, shown until the first connection exists. Each step links to its view once that is possible. */
function firstSteps({ applications, hasClient, hasConnection }: Begun): TemplateResult | typeof nothing {
  const [{ publicKey = "" } = {}, ...others] = applications;
  if (others.length > 0 || hasConnection) return nothing;
  const hasApplication = publicKey !== "";
  const at = (view: string, text: string) =>
    hasApplication ? html`<a href=${addressOf(view, { publicKey })}>${text}</a>` : text;
  const done = (isDone: boolean) => (isDone ? html` ${stateMark(true, "Done")}` : nothing);
  return html`<section aria-labelledby="first">
    <h2 id="first">First steps</h2>
    <ol>
      <li>
        <a href="#/applications">Create an application</a>: it represents the program that makes calls, and has its own
        users.${done(hasApplication)}
      </li>
      <li>
        ${at("clients", "Enter its OAuth client")} for a provider: the id and the secret that the provider gives
        you.${done(hasClient)}
      </li>
      <li>${at("link", "Make a connect link")} for a user. Whoever opens it connects an account.</li>
      <li>${at("try", "Try a call")} for that user.</li>
    </ol>
    <p class="hint">Each page links to the next.</p>
  </section>`;
}

function attentionList({ attentions = [] }: OverviewJson, directory: Directory): TemplateResult {
  if (attentions.length === 0) return html`<p role="status">${stateMark(true, "Nothing.")}</p>`;
  return html`<ul class="attentions">${attentions.map((each) => html`<li class="notice bad">${attentionView(each, directory)}</li>`)}</ul>`;
}

function attentionView(attention: AttentionJson, directory: Directory): TemplateResult {
  const { kind = "KIND_UNSPECIFIED", publicKey = "", providerName = "", sinceTime, message = "" } = attention;
  const { what, advice, view } = WORDS[kind] ?? UNKNOWN;
  const whose = publicKey === "" ? nothing : html` of ${applicationLink(directory, publicKey)}`;
  const where = providerName === "" ? nothing : html` at ${visibleText(providerName)}`;
  const address = view?.includes("?") ? `#/${view}` : addressOf(view ?? "", { publicKey, providerName });
  return html`<p>
      <strong>${what((noun) => countOf(attention, noun))}</strong>${whose}${where}${sinceTime === undefined ? nothing : html`, ${lasting(sinceTime)}`}.
      ${visibleText(message)}
    </p>
    <p>${advice} ${view === undefined ? nothing : html`<a href=${address}>Show details</a>`}</p>`;
}

/** The API reports at most 100, which stands for 100 or more. */
function countOf({ count = 0 }: AttentionJson, noun: string): string {
  return count >= 100 ? `100 or more ${noun}s` : countText(count, noun);
}

interface Words {
  /** @param count formats the count with a noun. */
  readonly what: (count: (noun: string) => string) => string;
  readonly advice: string;
  /** Where to look; the application and the provider are added. */
  readonly view?: string;
}

const UNKNOWN: Words = { what: () => "Something", advice: "This console is older than its relay: reload the page." };

const WORDS: Partial<Record<Attention_KindJson, Words>> = {
  KIND_STORE_NOT_WELL: {
    what: () => "The database has a problem",
    advice: "Calls are refused until it is fixed; see the log and relay config check.",
  },
  KIND_DISK_NEARLY_FULL: {
    what: () => "The database's disk is nearly full",
    advice: "When it is full, no token can be refreshed.",
  },
  KIND_CLIENT_REFUSED: {
    ...{ what: () => "The provider refuses the OAuth client", view: "clients" },
    advice: "Correct its id and secret: tokens are not refreshed until then.",
  },
  KIND_REFRESH_FAILING: {
    ...{ what: (count) => `Refreshing fails for ${count("connection")}`, view: "connections?state=failing" },
    advice: "This may resolve itself; each connection's page shows the provider's answer.",
  },
  KIND_REAUTHORIZATION_REQUIRED: {
    what: (count) => `${count("connection")} ended`,
    ...{
      view: "connections?state=STATE_REAUTHORIZATION_REQUIRED",
      advice: "Only the user can fix this, by connecting again.",
    },
  },
  KIND_EVENTS_WAITING: {
    ...{ what: (count) => `${count("event")} to be delivered`, view: "webhook" },
    advice: "The receiver rejects the events or does not answer.",
  },
  KIND_EVENTS_GIVEN_UP: {
    what: (count) => `${count("event")} given up in the last week`,
    advice: "These events will not be sent again; each application's webhook page lists them.",
  },
  KIND_CLOCK_DIFFERS: {
    what: () => "The clocks of the relay and the database differ",
    advice: "Synchronise both: tokens expire by the relay's clock, and figures from several relays can be wrong.",
  },
  KIND_NODE_ENDS: {
    what: () => "This version of Node.js is at the end of its support",
    advice: "Install a newer version and restart the relay with it: after that day there are no more security fixes.",
  },
  KIND_KEY_TO_ROTATE: {
    what: () => "The key that seals tokens is old",
    advice: "relay key rotate creates a new one while the relay runs.",
  },
};

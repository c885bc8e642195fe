import type { ListCallRecordsResponseJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import type { ConnectionJson, RefreshAttemptJson } from "../../gen/relay/admin/v1/connection_pb.js";
import type { ConnectionValueJson, ProviderJson } from "../../gen/relay/admin/v1/provider_pb.js";
import { applicationLinks, part } from "./application-view.js";
import { recordTable } from "./call-tables.js";
import { type Standing, standingOf, tokenLifeOf, withoutRefresh } from "./connection-state.js";
import { valuesOf } from "./connections-view.js";
import { applicationLink, type Directory } from "./directory.js";
import { type Field, userField, type Values } from "./field.js";
import { createForm, type Form, notice } from "./form.js";
import { msFrom } from "./frames.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createLoader, type Loading } from "./loading.js";
import { addressOf, visibleText } from "./text.js";
import {
  answerView,
  type Column,
  dataTable,
  lasting,
  lengthText,
  moment,
  stateMark,
  step,
  type View,
  type ViewContext,
} from "./view.js";
import { createDeliveries } from "./webhook-view.js";

/** Key of a connection. */
interface Key {
  readonly publicKey: string;
  readonly userId: string;
  readonly providerName: string;
}

/** Number of calls shown here; a link leads to all of them. */
const CALLS = 10;

/** Everything about one connection; if the address names only an application, a form for a new one. */
export function createConnectionView(context: ViewContext): View {
  const { api, update } = context;
  const found = createLoader<ConnectionJson>(update);
  const calls = createLoader<ListCallRecordsResponseJson>(update);
  const deliveries = createDeliveries(context);
  let key: Key = { publicKey: "", userId: "", providerName: "" };

  const isNew = () => key.userId === "" || key.providerName === "";

  function load(): void {
    if (isNew()) return;
    void found.load(() => api.call("ConnectionService/GetConnection", key));
    void calls.load(() => api.call("CallRecordService/ListCallRecords", { ...key, pageSize: CALLS }));
    void deliveries.load(key);
  }

  const storing = createStoringForm(context, {
    publicKey: () => key.publicKey,
    onStored: ({ userId = "", providerName = "" }) => {
      // The state and the actions of another connection, or of one that was deleted, must not stay.
      forget();
      key = { ...key, userId, providerName };
      load();
    },
  });

  const refreshing = createForm(context, {
    ...{ id: "refresh", method: "ConnectionService/RefreshConnection", button: "Refresh it now" },
    requestFrom: () => key,
    done: ({ problem = "" }) => {
      load();
      if (problem === "") return notice("Refreshed: it has a new access token.");
      return html`<p class="notice bad">${visibleText(problem)}</p>`;
    },
  });

  const removal = createForm(context, {
    ...{ id: "remove-connection", method: "ConnectionService/DeleteConnection", button: "Delete the connection" },
    ...{ sure: "Calls for this user will fail until the user connects again", isLast: true },
    fields: () => [{ name: "skipRevocation", label: "Do not revoke the token at the provider", kind: "flag" }],
    requestFrom: ({ skipRevocation }) => ({ ...key, skipRevocation: skipRevocation === "yes" }),
    done: ({ revocation = "" }) => notice(`Deleted the connection. ${WHAT_BECAME[revocation] ?? ""}`),
  });

  function forget(): void {
    for (const each of [refreshing, removal, found, calls, deliveries]) each.clear();
  }

  return {
    title: "Connection",
    enter(parameters) {
      const text = (name: string) => parameters.get(name) ?? "";
      key = { publicKey: text("publicKey"), userId: text("userId"), providerName: text("providerName") };
      storing.fill({ userId: key.userId, providerName: key.providerName });
      load();
    },
    leave() {
      storing.clear();
      forget();
    },
    render: () => html`<h1 tabindex="-1">Connection</h1>
      ${applicationLinks(context, key.publicKey, isNew() ? "connection" : "")}
      ${
        isNew() || removal.isOver
          ? nothing
          : html`${answerView(found, (connection) => html`${stateView(connection, refreshing, context.directory)} ${refreshesView(connection)}`)}
      ${callsView(calls, key)}
      <section class="part"><h2>Webhooks sent</h2>${deliveries.render()}</section>`
      }
      ${part(isNew() ? "Store tokens or keys" : "Store new tokens or keys", "An existing connection is replaced.", storing)}
      ${found.value === undefined ? nothing : part("Delete", "Its tokens are deleted here, and revoked at the provider where possible.", removal)}`,
  };
}

const WHAT_BECAME: Readonly<Record<string, string>> = {
  REVOCATION_REVOKED: "The token was revoked at the provider.",
  REVOCATION_NOT_SUPPORTED: "The provider cannot revoke the token; remove the access in the account there.",
  REVOCATION_FAILED: "The token could not be revoked at the provider; remove the access in the account there.",
  REVOCATION_SKIPPED: "The token was not revoked at the provider.",
};

function stateView(connection: ConnectionJson, refreshing: Form, directory: Directory): TemplateResult {
  const { publicKey = "", userId = "", providerName = "", scope = "", createTime, updateTime } = connection;
  const standing = standingOf(connection);
  const values = valuesOf(connection);
  const canRefresh = connection.state === "STATE_ACTIVE" && connection.hasRefreshToken;
  return html`<section aria-label="State">
      ${standingView(connection, standing)}
      <dl class="steps">
        ${step("User", html`<bdi class="id">${visibleText(userId)}</bdi>`)} ${step("Provider", visibleText(directory.providerOf(providerName)?.displayName ?? providerName))}
        ${step("Application", applicationLink(directory, publicKey))}
        ${step("Access token", tokenOf(connection))} ${refreshSteps(connection)}
        ${step("Scope", visibleText(scope || "unknown"))} ${values === nothing ? nothing : step("Values", values)}
        ${step("Connected", moment(createTime, ""))} ${step("Changed", moment(updateTime, ""))}
      </dl>
    </section>
    ${canRefresh ? part("Refresh", "Gets a new access token now, even if the current one is still valid.", refreshing) : nothing}`;
}

function standingView({ publicKey = "", userId = "", providerName = "" }: ConnectionJson, standing: Standing) {
  const { isGood, state, reason, since, advice, place } = standing;
  const todo =
    place === undefined
      ? nothing
      : html`<a href=${addressOf(place, { publicKey, userId, providerName })}>${place === "link" ? "Make a connect link" : "Correct the OAuth client"}</a>`;
  return html`<div class=${isGood ? "notice" : "notice bad"}>
    <p>${stateMark(isGood, state)}${since === undefined ? nothing : html`, ${lasting(since)}`}</p>
    ${reason === "" ? nothing : html`<p>${visibleText(reason)}</p>`}
    ${advice === "" ? nothing : html`<p>What to do: ${visibleText(advice)} ${todo}</p>`}
    <p><a href=${addressOf("try", { publicKey, userId, providerName })}>Try a call</a></p>
  </div>`;
}

function tokenOf(connection: ConnectionJson): TemplateResult {
  const { tokenTime, expireTime, tokenType = "" } = connection;
  const life = tokenLifeOf(connection, Date.now());
  const isOver = expireTime !== undefined && Date.parse(expireTime) <= Date.now();
  const end =
    expireTime === undefined ? "expiry unknown" : html`${isOver ? "expired" : "expires"} ${moment(expireTime, "")}`;
  const whole =
    life === undefined
      ? nothing
      : html`; ${Math.round(life.share * 100)} % of its lifetime of ${lengthText(life.lifeMs)} has passed
          <meter class="life" min="0" max="1" value=${life.share} aria-label="Share of its lifetime that has passed"></meter>`;
  return html`<bdi>${visibleText(tokenType || "unknown")}</bdi>, obtained ${moment(tokenTime, "not yet")}, ${end}${whole}`;
}

/** Last and next refresh of the token. */
function refreshSteps(connection: ConnectionJson): TemplateResult {
  const { hasRefreshToken, refreshTime, refreshFailureCount = 0, state } = connection;
  if (!hasRefreshToken) return step("Refresh", withoutRefresh(connection));
  const last = step("Last refreshed", moment(refreshTime, "never since it was connected"));
  if (refreshFailureCount === 0) return last;
  const { lastRefreshFailureTime, lastRefreshFailure = "", nextRefreshTime } = connection;
  return html`${last}
    ${step("Failed refreshes", html`${refreshFailureCount}, the last ${moment(lastRefreshFailureTime, "")}`)}
    ${step("Last answer", html`<span class="id">${visibleText(lastRefreshFailure)}</span>`)}
    ${state === "STATE_ACTIVE" ? step("Next try", moment(nextRefreshTime, "at the next call")) : nothing}`;
}

function refreshesView({ refreshAttempts = [], hasRefreshToken }: ConnectionJson): TemplateResult | typeof nothing {
  if (refreshAttempts.length === 0 && !hasRefreshToken) return nothing;
  return html`<section class="part">
    <h2>Last refreshes</h2>
    ${
      refreshAttempts.length === 0
        ? html`<p>None recorded. Up to 20 refreshes of the last 90 days are shown here, with their cause and the provider's answer.</p>`
        : dataTable("Last refreshes", REFRESH_COLUMNS, refreshAttempts)
    }
  </section>`;
}

const REFRESH_COLUMNS: ReadonlyArray<Column<RefreshAttemptJson>> = [
  { label: "Ended", cell: ({ endTime }) => moment(endTime, "") },
  { label: "Outcome", cell: refreshOutcomeOf },
  { label: "Cause", cell: ({ cause = "CAUSE_UNSPECIFIED" }) => CAUSES[cause] ?? visibleText(cause) },
  {
    label: "Answer",
    cell: ({ answer = "" }) => (answer === "" ? "New token" : html`<span class="id">${visibleText(answer)}</span>`),
  },
  { label: "Duration", cell: ({ duration }) => `${Math.round(msFrom(duration))} ms`, isNumeric: true, isDetail: true },
];

function refreshOutcomeOf({ outcome }: RefreshAttemptJson): TemplateResult {
  if (outcome === "OUTCOME_REFRESHED") return stateMark(true, "Refreshed");
  return stateMark(false, outcome === "OUTCOME_ENDED" ? "Must connect again" : "Failed; will be tried again");
}

const CAUSES: Readonly<Record<string, string>> = {
  CAUSE_DUE: "Token about to expire",
  CAUSE_EXPIRED: "Token had expired",
  CAUSE_REFUSED: "The provider refused it",
  CAUSE_REQUESTED: "An operator asked",
  CAUSE_ABANDONED: "Taken over from a process that stopped",
};

function callsView(calls: Loading<ListCallRecordsResponseJson>, key: Key): TemplateResult {
  return html`<section class="part">
    <h2>Its calls</h2>
    ${answerView(calls, ({ callRecords = [], nextPageToken = "" }) =>
      callRecords.length > 0
        ? recordTable("Its calls", callRecords, key.userId)
        : html`<p>${nextPageToken === "" ? "No call of this user is recorded." : "None among the newest calls."}</p>`,
    )}
    <p><a href=${addressOf("calls", { ...key })}>All its calls</a></p>
  </section>`;
}

/** Options of {@link createStoringForm}. */
interface StoringOptions {
  readonly publicKey: () => string;
  readonly onStored: (connection: ConnectionJson) => void;
}

/** A form that stores a user's tokens or keys; its fields depend on the provider's kind. */
function createStoringForm(context: ViewContext, { publicKey, onStored }: StoringOptions): Form {
  const { directory } = context;
  /** Empty while it is not known. */
  const provider = () => directory.providerOf(storing.values["providerName"] ?? "") ?? {};
  const storing: Form = createForm(context, {
    ...{ id: "connection", method: "ConnectionService/PutConnection", button: "Store the connection" },
    fields: () => [
      userField((text) => directory.findUsers(publicKey(), text)),
      { name: "providerName", label: "Provider", find: directory.findProviders, hint: "Type part of its name." },
      ...valueFields(provider()),
    ],
    requestFrom: (values) => ({
      ...{ publicKey: publicKey(), userId: values["userId"] ?? "", providerName: values["providerName"] ?? "" },
      ...contentFrom(values, provider()),
    }),
    done: (connection) => {
      onStored(connection);
      return notice(`Stored, sealed. Calls for ${visibleText(connection.userId ?? "")} can be made now.`);
    },
  });
  return storing;
}

/** The connection values that the operator enters: those that neither the provider nor the OAuth client supplies. */
function askedValues({ connectionValues = [] }: ProviderJson): readonly ConnectionValueJson[] {
  return connectionValues.filter(
    ({ callbackParameter, tokenMember, lookup, client }) => !(callbackParameter || tokenMember || lookup || client),
  );
}

/** Whether the provider uses keys instead of a token response. */
const isWithoutTokens = ({ kind = "oauth2" }: ProviderJson) => kind !== "oauth2";

function valueFields(provider: ProviderJson): readonly Field[] {
  const values = askedValues(provider).map(fieldOfValue);
  return isWithoutTokens(provider) ? values : [...values, TOKEN_FIELD];
}

const TOKEN_FIELD: Field = {
  ...{ name: "tokenResponse", label: "Token response of the provider", kind: "secret", isWide: true },
  hint: html`JSON: <code>access_token</code> and, if there are any, <code>refresh_token</code>, <code>expires_in</code> and
    <code>scope</code>.`,
};

function fieldOfValue({ name = "", label = "", help = "", secret = false, choices = [] }: ConnectionValueJson): Field {
  return {
    ...{ name: `value.${name}`, label: visibleText(label || name) },
    path: `${secret ? "secrets" : "origin_parameters"}.${name}`,
    ...(help === "" ? {} : { hint: visibleText(help) }),
    ...(secret ? { kind: "secret" } : {}),
    ...(choices.length === 0
      ? {}
      : {
          kind: "choice",
          choices: [["", ""], ...choices.map(({ value = "", label: text }) => [value, text || value] as const)],
        }),
  };
}

function contentFrom(values: Values, provider: ProviderJson) {
  const given = (isSecret: boolean) =>
    Object.fromEntries(
      askedValues(provider)
        .filter(({ secret = false }) => secret === isSecret)
        .map(({ name = "" }) => [name, values[`value.${name}`] ?? ""] as const)
        .filter(([, value]) => value !== ""),
    );
  const tokenResponse = isWithoutTokens(provider) ? "" : (values["tokenResponse"] ?? "");
  return { originParameters: given(false), secrets: given(true), tokenResponse };
}

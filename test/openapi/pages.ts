import { PAGE_ROUTES } from "../../src/pages/handler.js";

/** Tag of the pages. */
export const PAGES_TAG = {
  name: "Pages",
  description:
    "What browsers see while users connect their accounts: HTML for people, and redirects. Send browsers there; programs use the routes of `Connections`.",
};

const text = (description: string, more: object = {}) => ({ description, schema: { type: "string", ...more } });
const query = (name: string, description: string, required = false) => ({
  ...{ name, in: "query", ...(required ? { required } : {}), ...text(description, { maxLength: 4096 }) },
});

const WHOSE = [
  query("public_key", "The application's public key, where the address has neither link nor session."),
  query("user_id", "The application's own id of its user, with `public_key`."),
  query("user_signature", "Proof for applications with caller_auth SIGNED_USER, with `public_key`."),
  query("redirect_uri", "Where the browser goes afterwards, from the application's list; with `public_key`."),
  query(
    "opener_origin",
    "Origin of the page that opened this one in a window of its own, from the application's list: it gets a message with `provider`, `outcome` and `error` in the place of a redirect. With `public_key` or `link`.",
  ),
  query("scope", "Scope to ask for instead of the client's; with `public_key`."),
  query("link", "Secret of a connect link, which is used up by opening it; in the place of `public_key`."),
  query("session", "Secret of a page that is open in this browser; in the place of `public_key`."),
];
const PROVIDER = {
  ...{ name: "provider_name", in: "path", required: true },
  ...text("Name or alias of the provider, for example `github`."),
};
const FORM = {
  type: "object",
  properties: {
    action: { type: "string", const: "disconnect" },
    session: { type: "string", description: "Secret of the page." },
    provider: { type: "string", description: "Name or alias of the provider." },
  },
  required: ["action", "session", "provider"],
};

const VALUES = {
  type: "object",
  properties: { session: { type: "string", description: "Secret of the page." } },
  required: ["session"],
  additionalProperties: {
    type: "string",
    description: "A connection value of the provider's definition, by its name.",
  },
};

const html = (description: string) => ({ description, content: { "text/html": { schema: { type: "string" } } } });
const redirect = (description: string) => ({
  description,
  headers: { location: { required: true, schema: { type: "string", format: "uri-reference" } } },
});
const REFUSED = html("A page that says what is wrong and what to do, with the HTTP status of its reason.");

/** What each page is about, by method and path; every route of the pages must be here. */
const OPERATIONS: Readonly<Record<string, object>> = {
  "GET /oauth/connect": {
    operationId: "connectPage",
    summary: "The page of an application's providers",
    description: "Lists the providers with their states, and buttons to connect and to disconnect.",
    parameters: [...WHOSE, query("providers", "Names of those that the page lists, separated by `,`; all by default.")],
    responses: { "200": html("The page."), "303": redirect("To the page's own address, where a link was opened.") },
  },
  "POST /oauth/connect": {
    operationId: "disconnectOnPage",
    summary: "The page's form, which ends a connection",
    parameters: [],
    requestBody: { required: true, content: { "application/x-www-form-urlencoded": { schema: FORM } } },
    responses: { "303": redirect("Back to the page, which says what became of the connection.") },
  },
  "GET /oauth/connect/{provider_name}": {
    operationId: "startConnecting",
    summary: "Sends the browser to one provider",
    description:
      "Begins the authorization code flow (RFC 6749 section 4.1). A parameter of the provider's origin, such as `shop`, is a parameter of the query by its own name; the user is asked for one that is missing.",
    parameters: [PROVIDER, ...WHOSE],
    responses: {
      "200": html(
        "Says whose account is about to be connected, asks for a parameter of the provider's origin, or leads on to the provider.",
      ),
      "303": redirect("To the provider's authorization endpoint, in a browser that has seen a page of the relay."),
    },
  },
  "POST /oauth/connect/{provider_name}": {
    operationId: "enterKeys",
    summary: "The form in which a user enters the keys of one provider",
    description:
      "For providers of another kind than `oauth2`; the page of the GET request has the form, where a link of the application led to it.",
    parameters: [PROVIDER],
    requestBody: { required: true, content: { "application/x-www-form-urlencoded": { schema: VALUES } } },
    responses: {
      "200": html("Says that the account is connected, or leads on to `redirect_uri`."),
      "303": redirect("Back to the open page."),
    },
  },
  "POST /oauth/callback": {
    operationId: "postedCallback",
    summary: "The same for providers that let the browser post a form (OAuth 2.0 Form Post Response Mode)",
    parameters: [],
    requestBody: {
      required: true,
      content: {
        "application/x-www-form-urlencoded": { schema: { type: "object", additionalProperties: { type: "string" } } },
      },
    },
    responses: { "303": redirect("To the GET request, with the same parameters.") },
  },
  "GET /oauth/callback": {
    operationId: "callback",
    summary: "The redirection endpoint (RFC 6749 section 3.1.2), to register at providers",
    description: "Redeems the code once, stores the connection, and sends the browser on to where it came from.",
    parameters: [
      query("state", "What the relay sent along, which is of this browser and used once.", true),
      query("code", "RFC 6749 section 4.1.2."),
      query("error", "RFC 6749 section 4.1.2.1."),
      query("iss", "RFC 9207."),
    ],
    responses: {
      "200": html("Says that the account is connected, where no address to go on to was given or `opener_origin` was."),
      "303": redirect("To `redirect_uri` with `provider`, `outcome` and `error`, or to the open page."),
    },
  },
};

/** The paths of the pages, as their handler knows them. Throws when one of them is not described. */
export function pagePaths(): Record<string, Record<string, object>> {
  return Object.fromEntries(
    PAGE_ROUTES.map(({ path, answers }) => [
      path,
      Object.fromEntries([...answers.keys()].map((method) => [method.toLowerCase(), operationOf(`${method} ${path}`)])),
    ]),
  );
}

function operationOf(route: string): object {
  const operation = OPERATIONS[route] as { readonly responses: object } | undefined;
  if (operation === undefined) throw new Error(`pages.ts says nothing of ${route}`);
  const responses = { ...operation.responses, default: REFUSED };
  return { tags: [PAGES_TAG.name], security: [], ...operation, responses };
}

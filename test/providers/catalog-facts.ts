/**
 * Providers that share the user's account, and so the token: each may reach the hosts of the others. Members of a
 * family have the same token endpoint.
 */
export const FAMILIES: readonly (readonly string[])[] = [
  [
    "googleads",
    "googleanalytics",
    "googlebusinessprofile",
    "googlecalendar",
    "googlechat",
    "googleclassroom",
    "googlecontacts",
    "googledocs",
    "googledrive",
    "googleforms",
    "googleidentity",
    "googlemail",
    "googlesearchconsole",
    "googlesheets",
    "googletasks",
    "youtube",
  ],
  ["msgraphcalendar", "msgraphcontacts", "msgraphfiles", "msgraphmail", "msteams"],
  ["facebook", "fbidentity", "iggraphapi"],
];

/** Domains that belong to one company where it has more than one. */
export const COMPANIES: readonly (readonly string[])[] = [
  ["37signals.com", "basecampapi.com"],
  ["cc.email", "constantcontact.com"],
  ["deel.com", "letsdeel.com"],
  ["docusign.com", "docusign.net"],
  ["dropbox.com", "dropboxapi.com"],
  ["eventbrite.com", "eventbriteapi.com"],
  ["getgo.com", "goto.com", "logmeininc.com"],
  ["getharvest.com", "harvestapp.com"],
  ["gohighlevel.com", "leadconnectorhq.com"],
  ["google.com", "googleapis.com"],
  ["hubapi.com", "hubspot.com"],
  ["intercom.com", "intercom.io"],
  ["microsoft.com", "microsoftonline.com"],
  ["polar.com", "polaraccesslink.com", "polarremote.com"],
  ["sage.com", "sageone.com"],
  ["surveymonkey.ca", "surveymonkey.com"],
  ["tiktok.com", "tiktokapis.com"],
  ["twitter.com", "x.com"],
  ["withings.com", "withings.net"],
  ["yahoo.com", "yahooapis.com"],
  ["yandex.com", "yandex.net", "yandex.ru"],
  ["zoho.com", "zohoapis.com"],
];

/** Software that users host under names of their own: `https://{host}`, bound to the connection. */
export const SELF_HOSTED: ReadonlySet<string> = new Set(["mastodon", "woocommerce"]);

/** Providers that issue keys, not tokens: no authorization and no token endpoint. */
export const WITHOUT_OAUTH2: ReadonlySet<string> = new Set(["woocommerce"]);

/** Where the token goes, of the providers that do not take `Authorization: Bearer`. */
export const CREDENTIALS: Readonly<Record<string, readonly [header: string, scheme: string]>> = {
  bigcommerce: ["x-auth-token", ""],
  shopify: ["x-shopify-access-token", ""],
  soundcloud: ["authorization", "OAuth"],
  woocommerce: ["authorization", "Basic"],
  yandex: ["authorization", "OAuth"],
  zohocrm: ["authorization", "Zoho-oauthtoken"],
};

/** Names that are documented for the original service, and so must stay. */
export const DOCUMENTED_NAMES = [
  "airtable",
  "box",
  "facebook",
  "fbidentity",
  "github",
  "googlecalendar",
  "googleidentity",
  "googlemail",
  "googletasks",
  "hubspot",
  "iggraphapi",
  "linkedin",
  "mailchimp",
  "msgraphcalendar",
  "msgraphmail",
  "pipedrive",
  "quickbooks",
  "slack",
  "spotify",
  "stripe",
  "tiktok",
  "twitteroauth2",
  "typeform",
  "woocommerce",
  "xero",
  "youtube",
  "zoom",
];

/** Where API calls of real clients go. */
export const API_CALLS: Readonly<Record<string, readonly string[]>> = {
  github: ["https://api.github.com/user", "https://uploads.github.com/repos/o/r/releases/1/assets?name=a.zip"],
  googleidentity: [
    "https://openidconnect.googleapis.com/v1/userinfo",
    "https://www.googleapis.com/oauth2/v3/userinfo",
    "https://people.googleapis.com/v1/people/me?personFields=names",
  ],
  googlecalendar: ["https://www.googleapis.com/calendar/v3/calendars/primary/events"],
  googlemail: [
    "https://gmail.googleapis.com/gmail/v1/users/me/messages",
    "https://gmail.googleapis.com/upload/gmail/v1/users/me/messages/send?uploadType=multipart",
    "https://www.googleapis.com/gmail/v1/users/me/profile",
  ],
  googledrive: [
    "https://www.googleapis.com/drive/v3/files?q=name%20contains%20'x'",
    "https://www.googleapis.com/upload/drive/v3/files?uploadType=resumable",
  ],
  googletasks: ["https://tasks.googleapis.com/tasks/v1/users/@me/lists"],
  googlesheets: ["https://sheets.googleapis.com/v4/spreadsheets/x/values/A1:B2"],
  googleanalytics: ["https://analyticsdata.googleapis.com/v1beta/properties/1:runReport"],
  googlebusinessprofile: ["https://mybusiness.googleapis.com/v4/accounts/1/locations/2/reviews"],
  youtube: [
    "https://www.googleapis.com/youtube/v3/channels?part=id&mine=true",
    "https://www.googleapis.com/upload/youtube/v3/videos?uploadType=resumable&part=snippet",
    "https://youtubeanalytics.googleapis.com/v2/reports?ids=channel==MINE",
  ],
  slack: ["https://slack.com/api/chat.postMessage", "https://files.slack.com/upload/v1/ABC"],
  hubspot: ["https://api.hubapi.com/crm/v3/objects/contacts"],
  linkedin: ["https://api.linkedin.com/v2/userinfo", "https://www.linkedin.com/dms-uploads/sp/x/uploaded-image/0?ca=v"],
  spotify: ["https://api.spotify.com/v1/me"],
  facebook: [
    "https://graph.facebook.com/v26.0/me/accounts",
    "https://graph-video.facebook.com/v26.0/1/videos",
    "https://rupload.facebook.com/video-upload/v26.0/1",
  ],
  iggraphapi: ["https://graph.facebook.com/v26.0/1/media", "https://rupload.facebook.com/ig-api-upload/v26.0/1"],
  twitteroauth2: ["https://api.x.com/2/users/me", "https://api.twitter.com/2/users/me"],
  quickbooks: [
    "https://quickbooks.api.intuit.com/v3/company/1/query?query=select%20*%20from%20Invoice",
    "https://sandbox-quickbooks.api.intuit.com/v3/company/1/companyinfo/1",
    "https://sandbox.api.intuit.com/quickbooks/v4/payments/charges",
    "https://accounts.platform.intuit.com/v1/openid_connect/userinfo",
  ],
  zoom: ["https://api.zoom.us/v2/users/me", "https://fileapi.zoom.us/v2/chat/users/me/files"],
  airtable: [
    "https://api.airtable.com/v0/appX/Table%20A?maxRecords=3",
    "https://content.airtable.com/v0/appX/recX/Files/uploadAttachment",
  ],
  box: ["https://api.box.com/2.0/folders/0/items", "https://upload.box.com/api/2.0/files/content"],
  dropbox: ["https://api.dropboxapi.com/2/files/list_folder", "https://content.dropboxapi.com/2/files/upload"],
  msgraphmail: ["https://graph.microsoft.com/v1.0/me/messages?$top=5"],
  msgraphfiles: ["https://graph.microsoft.com/v1.0/me/drive/root:/a.txt:/content"],
  stripe: ["https://api.stripe.com/v1/customers", "https://files.stripe.com/v1/files"],
  mailchimp: ["https://us19.api.mailchimp.com/3.0/lists", "https://login.mailchimp.com/oauth2/metadata"],
  zendesk: ["https://acme.zendesk.com/api/v2/tickets.json"],
  woocommerce: ["https://shop.example.org/wp-json/wc/v3/orders"],
  notion: ["https://api.notion.com/v1/search"],
  linear: ["https://api.linear.app/graphql", "https://uploads.linear.app/x/y"],
  docusign: [
    "https://account.docusign.com/oauth/userinfo",
    "https://na4.docusign.net/restapi/v2.1/accounts/1/envelopes",
  ],
  discord: ["https://discord.com/api/v10/users/@me"],
  reddit: ["https://oauth.reddit.com/api/v1/me"],
  tiktok: ["https://open.tiktokapis.com/v2/user/info/?fields=open_id"],
  xero: ["https://api.xero.com/connections", "https://api.xero.com/api.xro/2.0/Invoices"],
};

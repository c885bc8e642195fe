/**
 * Why a definition says something else than a public reference (provider-facts.jsonl): `provider.field`, with the
 * reason that these have in common. The provider's own documentation counts; the notes of a definition have the details.
 */
export const DIFFERENCES: ReadonlyArray<{ readonly reason: string; readonly of: string }> = [
  {
    reason: "references disagree about the place of the client's secret; ours is the one that the provider documents",
    of: `adobe.clientAuthentication autodesk.clientAuthentication battlenet.clientAuthentication
      bitbucket.clientAuthentication calendly.clientAuthentication constantcontact.clientAuthentication
      discord.clientAuthentication dropbox.clientAuthentication ebay.clientAuthentication
      exactonline.clientAuthentication freeagent.clientAuthentication figma.clientAuthentication
      github.clientAuthentication googleidentity.clientAuthentication quickbooks.clientAuthentication
      keap.clientAuthentication linkedin.clientAuthentication notion.clientAuthentication okta.clientAuthentication
      pagerduty.clientAuthentication paypal.clientAuthentication pinterest.clientAuthentication
      reddit.clientAuthentication salesforce.clientAuthentication servicenow.clientAuthentication
      snowflake.clientAuthentication spotify.clientAuthentication trustpilot.clientAuthentication
      typeform.clientAuthentication vimeo.clientAuthentication zoom.clientAuthentication`,
  },
  { reason: "Etsy's token endpoint takes client_id without a secret", of: "etsy.clientAuthentication" },
  {
    reason: "the provider documents PKCE for clients without a secret; ours is for clients with one",
    of: "autodesk.pkce spotify.pkce zoom.pkce",
  },
  {
    reason: "the reference separates scopes by a comma, the provider's documentation by a space",
    of: `box.scopeSeparator figma.scopeSeparator github.scopeSeparator nationbuilder.scopeSeparator
      reddit.scopeSeparator vimeo.scopeSeparator zoom.scopeSeparator`,
  },
  {
    reason: "the reference lets the user name any host; ours names those of one account or one region",
    of: `clio.api clio.authorization clio.token datadog.api datadog.authorization datadog.token
      freshworks.api freshworks.authorization freshworks.token greenhouse.api ironclad.api ironclad.authorization
      ironclad.token pleo.api pleo.authorization pleo.token posthog.api sentry.api snowflake.api
      snowflake.authorization snowflake.token wrike.api zohocrm.api zohocrm.token battlenet.api
      battlenet.authorization battlenet.token exactonline.api exactonline.authorization exactonline.token
      msgraph.authorization msgraph.token discord.token discord.revocation salesforce.authorization salesforce.token
      salesforce.revocation salesforcesandbox.authorization salesforcesandbox.token`,
  },
  {
    reason: "the reference has an address that the provider has replaced, or another address of the same endpoint",
    of: `box.authorization box.token box.revocation buffer.authorization
      buffer.token constantcontact.authorization constantcontact.token discord.authorization ebay.authorization
      epicgames.token etsy.token figma.token freshbooks.authorization gettyimages.authorization gettyimages.token
      googleidentity.authorization googleidentity.token googleidentity.revocation googleads.token googleplay.token
      googleplay.authorization greenhouse.authorization greenhouse.token gumroad.token highlevel.authorization
      intercom.authorization keap.authorization metaads.authorization metaads.token pagerduty.authorization
      pagerduty.token paypal.authorization paypal.token paypalsandbox.authorization paypalsandbox.token
      pinterest.authorization pinterest.token reddit.authorization reddit.token stackexchange.authorization
      stackexchange.token strava.authorization strava.token todoist.authorization todoist.token
      twitteroauth2.token vimeo.authorization
      vimeo.token wrike.authorization wrike.token`,
  },
  {
    reason: "the reference means another product or flow of the same company",
    of: "googleanalytics.api googleplay.api sentry.token snapchat.authorization snapchat.token gong.api",
  },
  {
    reason: "the reference is mistaken: a placeholder that was not filled in, or another provider's address",
    of: `gitlab.authorization gitlab.token netsuite.authorization netsuite.token payfit.token`,
  },
  {
    reason: "the reference names the sign-in page that the authorization endpoint leads to",
    of: "contaazul.authorization",
  },
  { reason: "both hosts serve the same API; ours binds the host to the company", of: "bamboohr.api" },
  {
    reason: "the endpoint is no RFC 7009 one: it takes the token another way",
    of: "dropbox.revocation strava.revocation",
  },
  { reason: "the address takes no refresh request of RFC 6749", of: "threads.refresh" },
];

/**
 * Why a definition says something else than a public reference (provider-facts.jsonl): `provider.field`, with the
 * reason that these have in common. The provider's own documentation counts; the notes of a definition have the details.
 */
export const DIFFERENCES: ReadonlyArray<{ readonly reason: string; readonly of: string }> = [
  {
    reason: "references disagree about the place of the client's secret; ours is the one that the provider documents",
    of: `adobe.clientAuthentication auth0.clientAuthentication autodesk.clientAuthentication battlenet.clientAuthentication
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
  { reason: "the client proves itself by what it signs, and has no secret", of: "oktaservice.clientAuthentication" },
  {
    reason: "the reference has the audience of the assertion; Apple's documentation asks at another path",
    of: "applebusinessmanager.token",
  },
  {
    reason: "the provider documents PKCE for clients without a secret; ours is for clients with one",
    of: "spotify.pkce",
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
      ironclad.token pleo.api pleo.authorization pleo.token posthog.api snowflake.api
      snowflake.authorization snowflake.token wrike.api zohocrm.api zohocrm.token battlenet.api
      battlenet.authorization battlenet.token exactonline.api exactonline.authorization exactonline.token
      msgraph.authorization msgraph.token discord.token discord.revocation salesforce.authorization salesforce.token
      salesforce.revocation salesforcesandbox.authorization salesforcesandbox.token
      servicenowjwt.api servicenowjwt.token
      activecampaign.api messagebird.api clover.api clover.authorization clover.token clover.refresh dixa.api
      freshsales.api gitlabkey.api grafanacloud.api greenhousekey.api kustomer.api make.api mailgun.api maxio.api
      oktakey.api paddle.api phrase.api posthogkey.api athenahealth.api athenahealth.token commercetools.api
      commercetools.token marketo.api marketo.token paylocity.api paylocity.token salesforceclient.token zuora.api
      zuora.token sentrykey.api shipbobkey.api teamtailor.api`,
  },
  {
    reason: "the reference asks for the end of the host or names the data center of the United States; ours lists them",
    of: `zohocrm.authorization zohocalendar.api zohocalendar.authorization zohocalendar.token zohodesk.api
      zohodesk.authorization zohodesk.token zohoinventory.api zohoinventory.authorization zohoinventory.token
      zohomail.api zohomail.authorization zohomail.token zohopeople.api zohopeople.authorization zohopeople.token
      zohorecruit.api zohorecruit.authorization zohorecruit.token`,
  },
  {
    reason: "tenants have a region in their address; the reference has that of the first ones in the United States",
    of: "auth0.api auth0.authorization auth0.token auth0.revocation",
  },
  {
    reason: "the reference has an address that the provider has replaced, or another address of the same endpoint",
    of: `box.authorization box.token box.revocation buffer.authorization
      buffer.token constantcontact.authorization constantcontact.token discord.authorization ebay.authorization
      epicgames.token etsy.token figma.token freshbooks.authorization gettyimages.authorization gettyimages.token
      smugmug.api googleidentity.authorization googleidentity.token googleidentity.revocation googleads.token googleplay.token
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
    of: "onelogin.authorization onelogin.token onelogin.clientAuthentication personio.token personio.tokenRequestFormat twitteroauth1.authorization twitteroauth1.token googleanalytics.api googleplay.api snapchat.authorization snapchat.token gong.api",
  },
  {
    reason: "the reference is mistaken: a placeholder that was not filled in, or another provider's address",
    of: `gitlab.authorization gitlab.token netsuite.authorization netsuite.token payfit.token`,
  },
  {
    reason: "the reference names the sign-in page that the authorization endpoint leads to",
    of: "contaazul.authorization",
  },
  {
    reason:
      "both hosts serve the same API; ours is the one that the provider documents or that is bound to the company",
    of: "bamboohr.api bamboohrkey.api apollo.api",
  },
  {
    reason: "the endpoint is no RFC 7009 one: it takes the token another way",
    of: "dropbox.revocation strava.revocation",
  },
  { reason: "the address takes no refresh request of RFC 6749", of: "threads.refresh" },
];

import type { Page } from "playwright-core";

/** Signs in at the provider, allows the access, and is sent back. */
export async function signInAndAllow(page: Page, account = "ada"): Promise<void> {
  await signIn(page, account);
  await page.getByRole("button", { name: "Allow" }).click();
}

/** Goes on to the provider, from the relay's page that says whose account it will be where there is one. */
export async function goToProvider(page: Page): Promise<void> {
  const [onward, field] = [page.getByRole("link", { name: /^Continue to / }), page.getByLabel("Account")];
  await onward.or(field).first().waitFor();
  if (await onward.isVisible()) await onward.click();
  await field.waitFor();
}

/** Signs in at the provider; its page then asks for consent. */
export async function signIn(page: Page, account = "ada"): Promise<void> {
  await goToProvider(page);
  await page.getByLabel("Account").fill(account);
  await page.getByRole("button", { name: "Sign in" }).click();
}

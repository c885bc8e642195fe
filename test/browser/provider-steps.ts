import type { Page } from "playwright-core";

/** Signs in at the provider, allows the access, and is sent back. */
export async function signInAndAllow(page: Page, account = "ada"): Promise<void> {
  await signIn(page, account);
  await page.getByRole("button", { name: "Allow" }).click();
}

/** Signs in at the provider; its page then asks for consent. */
export async function signIn(page: Page, account = "ada"): Promise<void> {
  await page.getByLabel("Account").fill(account);
  await page.getByRole("button", { name: "Sign in" }).click();
}

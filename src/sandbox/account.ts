/** A user of the sandbox, as its resources show it. */
export interface Account {
  readonly id: string;
  readonly login: string;
  readonly name: string;
  readonly email: string;
}

/** The account of a token that names no other; members that are given replace its own. */
export function createAccount(members: Partial<Account> = {}): Account {
  return { id: "1001", login: "ada", name: "Ada Example", email: "ada@example.com", ...members };
}

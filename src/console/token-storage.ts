const KEY = "relay-admin-token";

/** The admin token of this tab: gone with it, and in no other one. */
export const tokenStorage = {
  read(): string | undefined {
    return sessionStorage.getItem(KEY) ?? undefined;
  },
  write(token: string): void {
    sessionStorage.setItem(KEY, token);
  },
  clear(): void {
    sessionStorage.removeItem(KEY);
  },
} as const;

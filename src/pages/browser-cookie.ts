/** The cookie that tells one browser from another: 256 random bits, which stand for nothing by themselves. */
export interface BrowserCookie {
  /** The browser's value; undefined when it has none that counts. */
  read(cookieHeader: string | undefined): string | undefined;
  /** The `Set-Cookie` field that gives it one. */
  write(value: string): string;
}

const VALUE = /^[A-Za-z0-9_-]{43}$/;

/**
 * Creates the cookie's use. Over https it is one that neither a sibling domain nor plain http can set (RFC 6265bis
 * section 4.1.3). SameSite is Lax, since the provider's redirect to the callback comes from another site.
 */
export function createBrowserCookie(isSecure: boolean): BrowserCookie {
  const name = isSecure ? "__Host-relay-browser" : "relay-browser";
  return {
    read(cookieHeader = "") {
      const values = cookieHeader
        .split(";")
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(`${name}=`))
        .map((pair) => pair.slice(name.length + 1));
      // Two of them: somebody else has set one.
      const [value = ""] = values.length === 1 ? values : [];
      return VALUE.test(value) ? value : undefined;
    },
    write: (value) => `${name}=${value}; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`,
  };
}

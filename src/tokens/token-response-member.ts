/** The members of a JSON object. */
export type Members = Readonly<Record<string, unknown>>;

/**
 * The object that holds a token response: the one at a dotted path, or the whole answer where there is none, since a
 * provider may wrap one answer and not another (Slack wraps a user's tokens when they are issued, and not when they are
 * refreshed).
 *
 * @param path undefined for the whole answer.
 */
export function tokenResponseMember(answer: Members, path: string | undefined): Members {
  let members = answer;
  for (const name of path?.split(".") ?? []) {
    const value = Object.hasOwn(members, name) ? members[name] : undefined;
    if (typeof value !== "object" || value === null || Array.isArray(value)) return answer;
    members = value as Members;
  }
  return members;
}

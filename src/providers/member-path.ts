/** Names with dots between them; as deep as a JSON path may go. */
const MEMBER_PATH = /^[^.\s]{1,64}(?:\.[^.\s]{1,64}){0,15}$/;

/** What a definition's dotted path of a JSON member must be, as a problem's text. */
export const MEMBER_PATH_HINT = "must be names with dots between them, such as error.code";

/** Whether a text of a definition is the dotted path of a JSON member: `error.code`. */
export function isMemberPath(text: string): boolean {
  return MEMBER_PATH.test(text);
}

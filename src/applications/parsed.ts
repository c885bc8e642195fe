/** What a parser of one setting answers: the value as it is stored, or what is wrong with the text. */
export type Parsed = { readonly value: string } | { readonly problem: string };

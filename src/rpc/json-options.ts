/** As the JSON route reads a call: no field that the schema does not have, no bytes that are not UTF-8 (threats I23). */
export const JSON_OPTIONS = {
  ignoreUnknownFields: false,
  textDecoder: new TextDecoder("utf-8", { fatal: true }),
} as const;

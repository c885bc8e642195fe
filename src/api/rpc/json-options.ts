import { requireFewPartsOfJson } from "./message-parts.js";

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/**
 * As the JSON route reads a call: no field that the schema does not have, no bytes that are not UTF-8 (threats I23). And
 * nothing that protobuf-es would take long for.
 */
export const JSON_OPTIONS = {
  ignoreUnknownFields: false,
  textDecoder: {
    decode(message: Uint8Array): string {
      requireFewPartsOfJson(message);
      return UTF8.decode(message);
    },
  },
} as const;

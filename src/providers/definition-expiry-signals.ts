import type { ExpirySignal as Definition } from "../../gen/relay/admin/v1/provider_pb.js";
import { isMemberPath, MEMBER_PATH_HINT } from "./endpoint.js";
import type { ExpirySignal, Report } from "./provider.js";

const MAX_VALUE_LENGTH = 256;

/** Reads the `expirySignals` of a definition. */
export function parseExpirySignals(signals: readonly Definition[], report: Report): readonly ExpirySignal[] {
  return signals.map((signal, at) => {
    const reportMember: Report = (field, message) => report(`expirySignals[${at}].${field}`, message);
    return parseExpirySignal(signal, reportMember);
  });
}

function parseExpirySignal({ statusCode, member, values, pastLifetime }: Definition, report: Report): ExpirySignal {
  if (statusCode < 200 || statusCode > 599) report("statusCode", "must be 200 to 599");
  if (member === "") {
    // Every good answer would be one.
    if (statusCode < 400) report("member", "must name a member: a status below 400 alone does not say it");
    if (values.length > 0) report("values", "only together with member");
    return { statusCode, pastLifetime, member: undefined };
  }
  if (!isMemberPath(member)) report("member", MEMBER_PATH_HINT);
  if (values.length === 0) report("values", "must list at least one value of member");
  values.forEach((value, at) => {
    if (value === "" || value.length > MAX_VALUE_LENGTH) report(`values[${at}]`, "must be 1 to 256 characters");
    else if (values.indexOf(value) !== at) report(`values[${at}]`, "stands twice");
  });
  return { statusCode, pastLifetime, member, values: new Set(values) };
}

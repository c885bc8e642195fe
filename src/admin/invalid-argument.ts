import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema } from "../../gen/relay/admin/v1/error_pb.js";

/**
 * The refusal of a request with a wrong field.
 *
 * @param field its path, such as `application.display_name`.
 * @param problem what follows the path in a sentence.
 */
export function invalidArgument(field: string, problem: string): ConnectError {
  const detail = { desc: ErrorDetailSchema, value: { field } };
  return new ConnectError(`${field} ${problem}.`, Code.InvalidArgument, undefined, [detail]);
}

/** A text that must be there. */
export function required(value: string, field: string): string {
  if (value === "") throw invalidArgument(field, "is missing");
  return value;
}

/** A message that must be there. */
export function requiredMessage<Message>(value: Message | undefined, field: string): Message {
  if (value === undefined) throw invalidArgument(field, "is missing");
  return value;
}

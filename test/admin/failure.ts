import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema } from "../../gen/relay/admin/v1/error_pb.js";

/** Code, message and the field at fault of a call that must fail. */
export async function failure(call: Promise<unknown>) {
  const error = await call.then(
    () => new ConnectError("did not fail"),
    (reason: unknown) => ConnectError.from(reason),
  );
  const [detail] = error.findDetails(ErrorDetailSchema);
  return { code: Code[error.code], message: error.rawMessage, field: detail?.field };
}

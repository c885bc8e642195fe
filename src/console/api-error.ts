/** A method of the administration API failed. `message` is for people. */
export class ApiError extends Error {
  /** Code of the Connect protocol, such as `permission_denied`. */
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = "ApiError";
    this.code = code;
  }
}

import { describe, expect, it } from "vitest";
import { outcomeFromError } from "../../src/call/outcome.js";
import { RelayError } from "../../src/model/errors.js";

describe("outcomeFromError()", () => {
  it.each<[string, unknown]>([
    ["an error that quotes the request", new SyntaxError(`Unexpected token 'S', "SECRETTOKE"... is not valid JSON`)],
    ["an error with a secret in its name", Object.assign(new Error("x"), { name: "SECRETTOKEN" })],
    ["thrown text", "SECRETTOKEN"],
    ["nothing", undefined],
  ])("answers %s with a sentence of its own, and reports it", (_what, error) => {
    const faults: unknown[] = [];
    const outcome = outcomeFromError("id", error, (where, fault) => faults.push(where, fault));
    expect(outcome).toEqual({
      result: "error",
      callId: "id",
      errorType: "INTERNAL_ERROR",
      statusCode: 500,
      message: "The relay failed. Try again, and give the operator this call's callId.",
      answer: undefined,
    });
    expect(faults).toEqual(["call", error]);
  });

  it("answers a RelayError with its own reason and sentence, which are no fault", () => {
    const faults: unknown[] = [];
    const error = new RelayError("INVALID_PROVIDER", "No.", { cause: new Error("SECRETTOKEN") });
    expect(outcomeFromError("id", error, (where) => faults.push(where))).toMatchObject({
      errorType: "INVALID_PROVIDER",
      statusCode: 404,
      message: "No.",
    });
    expect(faults).toEqual([]);
  });
});

import { errors } from "undici";
import { describe, expect, it } from "vitest";
import { RelayError } from "../../src/model/errors.js";
import {
  AddressRefusedError,
  deadlineError,
  type Progress,
  relayError,
  relayErrorFrom,
} from "../../src/upstream/failure.js";

const coded = (code: string) => Object.assign(new Error(`secret canary text ${code}`), { code });

describe("relayErrorFrom()", () => {
  it.each<[string, unknown, Progress, string, string]>([
    ["refused connection", coded("ECONNREFUSED"), "dialling", "PROVIDER_UNREACHABLE", "No connection"],
    ["no route", coded("EHOSTUNREACH"), "dialling", "PROVIDER_UNREACHABLE", "No connection"],
    [
      "connect timeout",
      new errors.ConnectTimeoutError("10.0.0.1:443"),
      "dialling",
      "PROVIDER_UNREACHABLE",
      "No connection",
    ],
    [
      "all attempts failed",
      new AggregateError([coded("ECONNREFUSED")]),
      "dialling",
      "PROVIDER_UNREACHABLE",
      "No connection",
    ],
    ["self-signed", coded("DEPTH_ZERO_SELF_SIGNED_CERT"), "dialling", "PROVIDER_UNREACHABLE", "No secure connection"],
    ["unknown issuer", coded("UNABLE_TO_GET_ISSUER_CERT_LOCALLY"), "dialling", "PROVIDER_UNREACHABLE", "No secure"],
    ["expired", coded("CERT_HAS_EXPIRED"), "dialling", "PROVIDER_UNREACHABLE", "No secure connection"],
    ["wrong name", coded("ERR_TLS_CERT_ALTNAME_INVALID"), "dialling", "PROVIDER_UNREACHABLE", "No secure connection"],
    [
      "old TLS",
      coded("ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION"),
      "dialling",
      "PROVIDER_UNREACHABLE",
      "No secure connection",
    ],
    ["not TLS", coded("EPROTO"), "dialling", "PROVIDER_UNREACHABLE", "No secure connection"],
    [
      "refused address",
      new AddressRefusedError("private"),
      "dialling",
      "PROVIDER_UNREACHABLE",
      "The provider's host resolves to",
    ],
    ["reset before an answer", coded("ECONNRESET"), "sent", "PROVIDER_UNREACHABLE", "The provider closed"],
    [
      "closed before an answer",
      new errors.SocketError("other side closed"),
      "sent",
      "PROVIDER_UNREACHABLE",
      "The provider closed",
    ],
    [
      "reset in an answer",
      coded("ECONNRESET"),
      "answering",
      "PROVIDER_RESPONSE_INVALID",
      "The provider's answer ended early",
    ],
    [
      "closed in an answer",
      new errors.SocketError("closed"),
      "answering",
      "PROVIDER_RESPONSE_INVALID",
      "The provider's answer ended early",
    ],
    [
      "TLS garbage in an answer",
      coded("ERR_SSL_WRONG_VERSION_NUMBER"),
      "answering",
      "PROVIDER_RESPONSE_INVALID",
      "The provider's answer ended early",
    ],
    [
      "parser error",
      new errors.HTTPParserError("bad canary"),
      "sent",
      "PROVIDER_RESPONSE_INVALID",
      "The provider's answer is not valid HTTP",
    ],
    [
      "too many header bytes",
      new errors.HeadersOverflowError(),
      "answering",
      "PROVIDER_RESPONSE_INVALID",
      "The provider's answer has more header",
    ],
    [
      "wrong length",
      new errors.ResponseContentLengthMismatchError(),
      "answering",
      "PROVIDER_RESPONSE_INVALID",
      "The provider's answer ended early",
    ],
    [
      "our own bad request",
      new errors.InvalidArgumentError("invalid authorization header"),
      "dialling",
      "INTERNAL_ERROR",
      "The request could",
    ],
    ["not even an error", "canary", "dialling", "PROVIDER_UNREACHABLE", "No connection"],
    ["nothing", undefined, "answering", "PROVIDER_RESPONSE_INVALID", "The provider's answer ended early"],
  ])("translates: %s", (_name, error, progress, reason, start) => {
    const translated = relayErrorFrom(error, progress);
    expect(translated).toBeInstanceOf(RelayError);
    expect(translated.reason).toBe(reason);
    expect(translated.message.startsWith(start)).toBe(true);
    expect(translated.message).not.toMatch(/canary|10\.0\.0\.1|authorization/);
    expect(translated.cause).toBe(error);
  });

  it("does not translate twice", () => {
    const error = relayError("name");
    expect(relayErrorFrom(error, "dialling")).toBe(error);
  });

  it("does not listen to the text of an error", () => {
    const error = new Error("Response does not match the HTTP/1.1 protocol (CERT_HAS_EXPIRED)");
    expect(relayErrorFrom(error, "dialling").message).toMatch(/^No connection/);
  });
});

describe("deadlineError()", () => {
  it.each<[Progress, string]>([
    ["waiting", "No connection"],
    ["dialling", "No connection"],
    ["sent", "The provider did not finish"],
    ["answering", "The provider did not finish"],
  ])("says after %s whether the provider may have acted", (progress, start) => {
    expect(deadlineError(progress)).toMatchObject({ reason: "PROVIDER_TIMEOUT" });
    expect(deadlineError(progress).message.startsWith(start)).toBe(true);
  });
});

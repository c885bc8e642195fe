import { create, createFileRegistry, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { status as Code } from "@grpc/grpc-js";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ServerReflection,
  type ServerReflectionRequestSchema,
  type ServerReflectionResponse,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { invokeRaw, relayClient } from "./grpc-client.js";

const INFO = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const NOT_FOUND = { errorCode: 5, errorMessage: "not found" };

type Question = NonNullable<MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"]>;

let harness: Harness;
let reflection: Client<typeof ServerReflection>;

beforeAll(async () => {
  harness = await startHarness();
  reflection = createClient(ServerReflection, createGrpcTransport({ baseUrl: harness.url }));
});

afterAll(() => harness.close());

/** Sends all questions on one stream and collects the answers. */
async function ask(...questions: Question[]): Promise<ServerReflectionResponse[]> {
  async function* requests() {
    for (const messageRequest of questions) yield { host: "relay.test", messageRequest };
  }
  const answers: ServerReflectionResponse[] = [];
  for await (const answer of reflection.serverReflectionInfo(requests())) answers.push(answer);
  return answers;
}

async function askOne(question: Question): Promise<unknown> {
  const [answer, ...more] = await ask(question);
  expect(more).toEqual([]);
  return answer?.messageResponse.value;
}

/** The files of one answer, which must be complete: a registry can be built from them alone. */
async function filesFor(question: Question): Promise<string[]> {
  const [answer] = await ask(question);
  if (answer?.messageResponse.case !== "fileDescriptorResponse")
    throw new Error(`no files: ${answer?.messageResponse.case}`);
  const file = answer.messageResponse.value.fileDescriptorProto.map((bytes) =>
    fromBinary(FileDescriptorProtoSchema, bytes),
  );
  createFileRegistry(create(FileDescriptorSetSchema, { file }));
  return file.map(({ name }) => name);
}

const symbol = (value: string): Question => ({ case: "fileContainingSymbol", value });
const extension = (containingType: string, extensionNumber: number): Question => ({
  case: "fileContainingExtension",
  value: { containingType, extensionNumber },
});

describe("server reflection", () => {
  it("ends the stream with a status for bytes that are no request", async () => {
    const client = relayClient(harness.url);
    await expect(invokeRaw(client, INFO, Buffer.from([0xff]))).rejects.toMatchObject({ code: Code.INTERNAL });
    client.close();
  });

  it("is not served over HTTP/1.1, which has no bidirectional streams", async () => {
    const headers = { "content-type": "application/grpc" };
    const { statusCode, body } = await request(harness.url + INFO, { method: "POST", headers, body: "\0\0\0\0\0" });
    await body.dump();
    expect(statusCode).toBe(505);
  });

  it("answers a request that asks nothing with an error, and the next one as well", async () => {
    const [nothing, services] = await ask({ case: undefined }, { case: "listServices", value: "" });
    expect(nothing?.messageResponse).toMatchObject({ case: "errorResponse", value: { errorCode: 3 } });
    expect(services?.messageResponse.case).toBe("listServicesResponse");
  });

  it("repeats the host and the question in each answer", async () => {
    const [answer] = await ask(symbol("relay.v1.CallRequest"));
    expect(answer?.validHost).toBe("relay.test");
    expect(answer?.originalRequest?.messageRequest).toEqual(symbol("relay.v1.CallRequest"));
  });

  it("answers several requests on one stream, in order", async () => {
    const answers = await ask(symbol("nobody.v1"), { case: "listServices", value: "" }, symbol("relay.v1.ResultRow"));
    expect(answers.map(({ messageResponse }) => messageResponse.case)).toEqual([
      "errorResponse",
      "listServicesResponse",
      "fileDescriptorResponse",
    ]);
  });

  it("lists the services", async () => {
    expect(await askOne({ case: "listServices", value: "" })).toMatchObject({
      service: [
        { name: "relay.v1.RelayService" },
        { name: "grpc.health.v1.Health" },
        { name: "grpc.reflection.v1.ServerReflection" },
      ],
    });
  });

  it.each(["", "relay.proto", "relay/v1/relay", "../relay/v1/relay.proto", "relay/admin/v1/provider.proto"])(
    "knows no file '%s'",
    async (value) => {
      expect(await askOne({ case: "fileByFilename", value })).toMatchObject(NOT_FOUND);
    },
  );

  it("finds a file by name, with everything it imports in front of it", async () => {
    expect(await filesFor({ case: "fileByFilename", value: "relay/v1/relay.proto" })).toEqual([
      "google/api/http.proto",
      "google/protobuf/descriptor.proto",
      "google/api/annotations.proto",
      "google/protobuf/struct.proto",
      "google/protobuf/timestamp.proto",
      "relay/v1/relay.proto",
    ]);
  });

  it.each([
    "",
    ".",
    "__proto__",
    "constructor",
    "relay.v1",
    "relay.v1.",
    ".relay.v1.CallRequest",
    "relay.v1.Nothing",
    "relay.v1.RelayService.Nothing",
    "relay.v1.CallRequest.nothing",
    "relay.v1.CallRequest.constructor",
    "relay.admin.v1.Provider",
  ])("knows no symbol '%s'", async (value) => {
    expect(await askOne(symbol(value))).toMatchObject(NOT_FOUND);
  });

  it.each([
    ["a service", "relay.v1.RelayService", "relay/v1/relay.proto"],
    ["a method", "relay.v1.RelayService.Call", "relay/v1/relay.proto"],
    ["a message", "relay.v1.CallDescription", "relay/v1/relay.proto"],
    ["a field", "relay.v1.ResultRow.inernal_error", "relay/v1/relay.proto"],
    ["an enum", "relay.v1.ResponseMode", "relay/v1/relay.proto"],
    ["an extension", "google.api.http", "google/api/annotations.proto"],
    ["a message that is imported", "google.protobuf.Struct", "google/protobuf/struct.proto"],
    ["a message inside another", "grpc.health.v1.HealthCheckResponse.ServingStatus", "health/v1/health.proto"],
  ])("finds the file of %s", async (_what, value, file) => {
    expect((await filesFor(symbol(value))).at(-1)).toBe(file);
  });

  it.each([
    ["google.protobuf.MethodOptions", 1],
    ["google.protobuf.FieldOptions", 72295728],
    ["nobody.v1.Message", 72295728],
  ])("knows no extension of %s with number %d", async (type, number) => {
    expect(await askOne(extension(type, number))).toMatchObject(NOT_FOUND);
  });

  it("finds the file of google.api.http, extension 72295728 of MethodOptions", async () => {
    const files = await filesFor(extension("google.protobuf.MethodOptions", 72295728));
    expect(files.at(-1)).toBe("google/api/annotations.proto");
  });

  it.each([
    ["nobody.v1.Message", NOT_FOUND],
    ["relay.v1.ResponseMode", NOT_FOUND],
    ["relay.v1.CallRequest", { baseTypeName: "relay.v1.CallRequest", extensionNumber: [] }],
    ["google.protobuf.MethodOptions", { baseTypeName: "google.protobuf.MethodOptions", extensionNumber: [72295728] }],
  ])("knows all extension numbers of %s", async (value, answer) => {
    expect(await askOne({ case: "allExtensionNumbersOfType", value })).toMatchObject(answer);
  });
});

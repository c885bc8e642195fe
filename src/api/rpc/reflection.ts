import { create, createRegistry, type DescFile, type DescService, type Registry, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ServiceImpl } from "@connectrpc/connect";
import {
  type ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";

type ReflectionAnswer = ServerReflectionResponse["messageResponse"];

/**
 * gRPC server reflection v1 over the descriptors of the generated code, so that `buf curl` and others need no schema.
 *
 * @see https://github.com/grpc/grpc/blob/master/doc/server-reflection.md
 */
export function createReflectionService(services: readonly DescService[]): ServiceImpl<typeof ServerReflection> {
  const files = new Map<string, DescFile>();
  for (const service of services) collectFiles(service.file, files);
  const registry = createRegistry(...files.values());
  return {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield create(ServerReflectionResponseSchema, {
          validHost: request.host,
          originalRequest: request,
          messageResponse: answerFor(request, services, files, registry),
        });
      }
    },
  };
}

function answerFor(
  { messageRequest }: ServerReflectionRequest,
  services: readonly DescService[],
  files: ReadonlyMap<string, DescFile>,
  registry: Registry,
): ReflectionAnswer {
  switch (messageRequest.case) {
    case "listServices":
      return listServices(services);
    case "fileByFilename":
      return fileResponse(files.get(messageRequest.value));
    case "fileContainingSymbol":
      return fileResponse(fileOfSymbol(messageRequest.value, registry));
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = messageRequest.value;
      return fileResponse(extensionsOf(containingType, registry).find((ext) => ext.number === extensionNumber)?.file);
    }
    case "allExtensionNumbersOfType":
      return extensionNumbers(messageRequest.value, registry);
    default:
      return failure(Code.InvalidArgument, "empty reflection request");
  }
}

function listServices(services: readonly DescService[]): ReflectionAnswer {
  const service = services.map(({ typeName }) => ({
    $typeName: "grpc.reflection.v1.ServiceResponse" as const,
    name: typeName,
  }));
  return { case: "listServicesResponse", value: { $typeName: "grpc.reflection.v1.ListServiceResponse", service } };
}

/** The file with everything it imports, so that clients need no further requests. */
function fileResponse(file: DescFile | undefined): ReflectionAnswer {
  if (file === undefined) return failure(Code.NotFound, "not found");
  const needed = new Map<string, DescFile>();
  collectFiles(file, needed);
  const fileDescriptorProto = [...needed.values()].map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  return {
    case: "fileDescriptorResponse",
    value: { $typeName: "grpc.reflection.v1.FileDescriptorResponse", fileDescriptorProto },
  };
}

function extensionNumbers(typeName: string, registry: Registry): ReflectionAnswer {
  if (registry.getMessage(typeName) === undefined) return failure(Code.NotFound, "not found");
  const extensionNumber = extensionsOf(typeName, registry).map((extension) => extension.number);
  return {
    case: "allExtensionNumbersResponse",
    value: { $typeName: "grpc.reflection.v1.ExtensionNumberResponse", baseTypeName: typeName, extensionNumber },
  };
}

function failure(errorCode: Code, errorMessage: string): ReflectionAnswer {
  return { case: "errorResponse", value: { $typeName: "grpc.reflection.v1.ErrorResponse", errorCode, errorMessage } };
}

function extensionsOf(typeName: string, registry: Registry) {
  return [...registry]
    .filter((type) => type.kind === "extension")
    .filter((type) => type.extendee.typeName === typeName);
}

/** A type, a service, or a member of one: `package.Service.Method`, `package.Message.field`. */
function fileOfSymbol(symbol: string, registry: Registry): DescFile | undefined {
  const direct = registry.get(symbol);
  if (direct !== undefined) return direct.file;
  const dot = symbol.lastIndexOf(".");
  const parent = dot === -1 ? undefined : registry.get(symbol.slice(0, dot));
  const member = symbol.slice(dot + 1);
  if (parent?.kind === "service") return parent.methods.some(({ name }) => name === member) ? parent.file : undefined;
  if (parent?.kind === "message") return parent.fields.some(({ name }) => name === member) ? parent.file : undefined;
  return undefined;
}

/** The file after all files it imports, each once. */
function collectFiles(file: DescFile, into: Map<string, DescFile>): void {
  const name = file.proto.name;
  if (into.has(name)) return;
  for (const dependency of file.dependencies) collectFiles(dependency, into);
  into.set(name, file);
}

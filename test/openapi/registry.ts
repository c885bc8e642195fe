import { execFileSync } from "node:child_process";
import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** The schema of proto/ with its comments, which the generated code does not have. */
export function readSchema(): FileRegistry {
  const image = execFileSync("npx", ["buf", "build", "proto", "-o", "-#format=binpb"], { maxBuffer: 64 * 1024 * 1024 });
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, image));
}

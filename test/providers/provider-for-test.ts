import { parseProvider } from "../../src/providers/definition.js";
import { type Provider, textFromProblem } from "../../src/providers/provider.js";

/** A provider from the members of a definition; fails on any problem. */
export function providerFrom(members: Readonly<Record<string, unknown>>, allowLoopback = false): Provider {
  const definition = { name: "test", apiOrigins: ["https://api.example.com"], ...members };
  const parsed = parseProvider(JSON.stringify(definition), "test.json", { allowLoopback });
  if ("provider" in parsed) return parsed.provider;
  throw new Error(parsed.problems.map(textFromProblem).join("\n"));
}

/** The problems of a definition as an operator reads them. */
export function problemsOf(definition: unknown, allowLoopback = false): string[] {
  const text = typeof definition === "string" ? definition : JSON.stringify(definition);
  const parsed = parseProvider(text, "test.json", { allowLoopback });
  return "problems" in parsed ? parsed.problems.map(textFromProblem) : [];
}

import { readFileSync } from "node:fs";
import dockerfileUtils from "dockerfile-utils";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { unknownSettings } from "../../src/config/config.js";

it("docs/deploy/Dockerfile has no fault that a linter knows", () => {
  expect(dockerfileUtils.validate(readFileSync("docs/deploy/Dockerfile", "utf8"))).toEqual([]);
});

it("docs/deploy/compose.yaml takes from the container what the relay does not need, and sets what there is", () => {
  const { relay } = parse(readFileSync("docs/deploy/compose.yaml", "utf8")).services;
  expect(relay).toMatchObject({ read_only: true, cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] });
  expect(unknownSettings(relay.environment)).toEqual([]);
});

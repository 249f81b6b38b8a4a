import { readFile } from "node:fs/promises";
import openapi, { astToString } from "openapi-typescript";
import { expect, test } from "./support/test";

test("the API types match the service", async ({ site }) => {
  const made = astToString(await openapi(new URL("/openapi.json", site.url)));
  const kept = await readFile(new URL("../src/api/schema.d.ts", import.meta.url), "utf8");
  // The command line adds a header with the generator.
  expect(kept.includes(made), "src/api/schema.d.ts is old: scripts/ui types regenerates it").toBe(true);
});

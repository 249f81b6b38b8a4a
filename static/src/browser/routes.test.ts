import { expect, it } from "vitest";
import { routes } from "./routes";

it("a source URL has its lake key and line", () => {
  const at = (text: string) => Object.fromEntries(new URL(text, "http://x").searchParams);
  const [prefix, file] = ["pipelines/trips/2013/", "pipelines/trips/2013/a b.csv"];
  expect(at(routes.source("trips", "2013/a b.csv", 7))).toEqual({ prefix, file, line: "7" });
  expect(at(routes.source("trips", "2013/a b.csv", null))).toEqual({ prefix, file });
});

// @vitest-environment node
import { readdirSync, readFileSync, statSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";

/** Scripts and styles in total, compressed, in bytes. */
const WHOLE_MAX = 730_000;
/** Scripts and styles of the first view, compressed, in bytes. */
const START_MAX = 120_000;
const assets = new URL("../dist/assets/", import.meta.url);
const packed = (name: string): number => gzipSync(readFileSync(new URL(name, assets))).length;
const built = (): string[] => {
  expect(statSync(assets, { throwIfNoEntry: false }), "the UI isn't built: scripts/ui build").toBeDefined();
  return readdirSync(assets).filter((name) => /\.(js|css)$/.test(name));
};

it("scripts and styles are within the size budget", () => {
  const sizes = built().map((name) => [name, packed(name)] as const);
  const whole = sizes.reduce((sum, [, size]) => sum + size, 0);
  expect(whole, sizes.map(([name, size]) => `${name} ${size}`).join("\n")).toBeLessThan(WHOLE_MAX);
});

it("the initial bundle has neither editor nor charts", () => {
  const page = readFileSync(new URL("../dist/index.html", import.meta.url), "utf8");
  const first = built().filter((name) => page.includes(name));
  expect(first.length).toBeGreaterThan(0);
  expect(first.reduce((sum, name) => sum + packed(name), 0)).toBeLessThan(START_MAX);
  for (const name of first) expect(readFileSync(new URL(name, assets), "utf8")).not.toMatch(/echarts|cm-editor/);
});

it("the page has no inline scripts or styles", () => {
  const page = readFileSync(new URL("../dist/index.html", import.meta.url), "utf8");
  expect(page).not.toMatch(/<style|style=|<script(?![^>]*\ssrc=)|\son\w+=/i);
});

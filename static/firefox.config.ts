import { defineConfig } from "@playwright/test";
import base from "./playwright.config.ts";

/** The main paths in Firefox: `scripts/ui firefox`. Playwright runs the tests, and Puppeteer drives the browser. */
export default defineConfig({
  ...base,
  testDir: "tests/firefox",
  testIgnore: [],
  workers: 1,
});

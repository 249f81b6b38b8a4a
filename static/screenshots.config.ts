import { defineConfig } from "@playwright/test";
import base from "./playwright.config.ts";

/** Screenshots of every view: `scripts/screenshots`. */
export default defineConfig({
  ...base,
  testDir: "screenshots",
  testMatch: "*.shots.ts",
  timeout: 900_000,
  workers: 1,
  reporter: [["line"]],
});

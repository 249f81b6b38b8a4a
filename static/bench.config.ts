import { defineConfig } from "@playwright/test";
import base from "./playwright.config.ts";

/** Measurements: `scripts/bench ui`. They assert nothing about time. */
export default defineConfig({
  ...base,
  testDir: "bench",
  testMatch: "*.bench.ts",
  timeout: 1_200_000,
  workers: 1,
  // A trace takes pictures of all that is measured.
  use: { ...base.use, trace: "off" },
  reporter: [["line"]],
});

import { defineConfig } from "@playwright/test";
import base from "./playwright.config.ts";

/** Measurements: `scripts/bench ui`. No timing assertions. */
export default defineConfig({
  ...base,
  testDir: "bench",
  testMatch: "*.bench.ts",
  timeout: 1_200_000,
  workers: 1,
  // A trace would capture everything, which distorts the measurement.
  use: { ...base.use, trace: "off" },
  reporter: [["line"]],
});

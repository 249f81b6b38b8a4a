import { defineConfig } from "@playwright/test";

/** Starting the service and Chromium takes long on two shared cores. */
const TEST_MS_MAX = 180_000;
const EXPECT_MS_MAX = 30_000;

export default defineConfig({
  testDir: "tests",
  testIgnore: "firefox/**",
  outputDir: "test-results",
  timeout: TEST_MS_MAX,
  expect: { timeout: EXPECT_MS_MAX },
  fullyParallel: false,
  forbidOnly: Boolean(process.env.CI),
  retries: Number(process.env.LAKEMILL_TEST_RETRIES ?? 0),
  workers: Number(process.env.LAKEMILL_TEST_WORKERS ?? 2),
  reporter: [["list"]],
  use: {
    headless: true,
    viewport: { width: 1440, height: 900 },
    locale: "en-US",
    timezoneId: "Europe/Berlin",
    trace: "retain-on-failure",
    launchOptions: {
      executablePath: process.env.LAKEMILL_TEST_CHROMIUM ?? "/usr/bin/chromium",
      // As root and without a network: no sandbox of its own, and no requests to its vendor's hosts.
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});

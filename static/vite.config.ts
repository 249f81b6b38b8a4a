import { defineConfig } from "vitest/config";
import { compress } from "./compress.ts";

// Style sheets and scripts are files of their own, without inline code: the service's content policy allows nothing else.
export default defineConfig({
  plugins: [compress()],
  build: {
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          // What most views need, as one file: small ones of their own pack badly.
          groups: [
            {
              name: "shared",
              test: /src\/(browser|api|format|components|shell|uploads|runs)\/[\w-]+\.tsx?$/,
              minShareCount: 2,
            },
          ],
        },
      },
    },
  },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/schemas", "/openapi.json", "/readyz"].map((path) => [
        path,
        process.env.LAKEMILL_URL ?? "http://127.0.0.1:3000",
      ]),
    ),
  },
  test: {
    include: ["src/**/*.test.{ts,tsx}"],
    environment: "happy-dom",
    restoreMocks: true,
  },
});

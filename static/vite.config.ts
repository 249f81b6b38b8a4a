import { defineConfig } from "vitest/config";
import { compress } from "./compress.ts";

// Style sheets and scripts are separate files, without inline code, as the service's content security policy requires.
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
          // Code shared by most views in one file: small files compress poorly.
          groups: [
            {
              name: "shared",
              test: /src\/(browser|api|format|components|shell|uploads|runs)\/[\w-]+\.tsx?$/,
              minShareCount: 2,
            },
            { name: "icons", test: /lucide-preact.*icons/ },
            { name: "help", test: /src\/views\/\w+\/help\.ts$/ },
          ],
        },
      },
    },
  },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/schemas", "/session", "/openapi.json", "/readyz"].map((path) => [
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

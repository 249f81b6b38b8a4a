import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

const PACKABLE = /\.(?:js|css|html|svg|json)$/;

/**
 * Compresses every text file (`.br`, `.gz`), so that the service needn't do it at each request. The program embeds scripts
 * and styles in these forms only.
 */
export function compress(): Plugin {
  return {
    name: "lakemill-compress",
    apply: "build",
    async writeBundle(options) {
      const root = options.dir ?? "dist";
      const names = await readdir(root, { recursive: true });
      await Promise.all(names.filter((name) => PACKABLE.test(name)).map((name) => pack(join(root, name))));
    },
  };
}

async function pack(path: string): Promise<void> {
  const bytes = await readFile(path);
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  await writeFile(`${path}.br`, await promisify(brotliCompress)(bytes, { params }));
  await writeFile(`${path}.gz`, await promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION }));
}

import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

const PACKABLE = /\.(?:js|css|html|svg|json)$/;
/** In bytes; compressing a smaller file saves no packet. */
const BYTES_MIN = 1_024;

/** Compresses every text file (`.br`, `.gz`), so that the service needn't do it at each request. */
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
  if (bytes.length < BYTES_MIN) return;
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  await writeFile(`${path}.br`, await promisify(brotliCompress)(bytes, { params }));
  await writeFile(`${path}.gz`, await promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION }));
}

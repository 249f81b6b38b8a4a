import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { BINARY } from "./instance";
import { spawnOwned, type Owned } from "./owned";

const START_MS_MAX = 60_000;
const PASSWORD = "a fleet's password";

/** Worker and web service on a Redis and an S3 server of their own. */
export interface Fleet {
  url: string;
  password: string;
  remove: () => Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (!address || typeof address === "string") throw new Error("no port is free");
  return address.port;
}

async function answers(url: string, child: Owned, log: string[]): Promise<void> {
  const end = Date.now() + START_MS_MAX;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}:\n${log.join("")}`);
    const answered = await fetch(url).then(
      () => true,
      () => false,
    );
    if (answered) return;
    if (Date.now() > end) throw new Error(`${url} doesn't answer:\n${log.join("")}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function fleet(): Promise<Fleet> {
  const folder = await mkdtemp(join(tmpdir(), "lakemill-fleet-"));
  const children: Owned[] = [];
  const [redis, s3, worker, web] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const s3Server = process.env.LAKEMILL_TEST_S3S_FS;
  if (!s3Server) throw new Error("LAKEMILL_TEST_S3S_FS names no S3 server; scripts/test sets it");

  async function remove(): Promise<void> {
    for (const child of children.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
      await ended;
      clearTimeout(timer);
    }
    await rm(folder, { recursive: true, force: true });
  }

  const start = (program: string, args: string[], env: Record<string, string> = {}) => {
    const log: string[] = [];
    const child = spawnOwned(program, args, {
      env: { ...process.env, ...env },
      cwd: folder,
    });
    child.stdout.on("data", (text) => log.push(String(text)));
    child.stderr.on("data", (text) => log.push(String(text)));
    children.push(child);
    return { child, log };
  };

  try {
    const buckets = ["pipelines", "lake", "warehouse"];
    for (const bucket of buckets) await mkdir(join(folder, "s3", bucket), { recursive: true });
    start("redis-server", ["--port", String(redis), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    const keys = ["--access-key", "key", "--secret-key", "secret"];
    const store = start(s3Server, ["--host", "127.0.0.1", "--port", String(s3), ...keys, join(folder, "s3")]);
    await answers(`http://127.0.0.1:${s3}/`, store.child, store.log);
    const hash = await promisify(execFile)("sh", ["-c", `printf '%s\\n' "$PASSWORD" | "$BINARY" hash-password`], {
      env: { ...process.env, PASSWORD, BINARY },
    });
    const env = {
      S3_BUCKET_PIPELINES: "pipelines",
      S3_BUCKET_LAKE: "lake",
      S3_BUCKET_WAREHOUSE: "warehouse",
      OBJ_ACCESS_KEY_ID: "key",
      OBJ_SECRET_ACCESS_KEY: "secret",
      OBJ_REGION: "us-east-1",
      OBJ_ENDPOINT_URL: `http://127.0.0.1:${s3}`,
      KV_URL: `redis://127.0.0.1:${redis}`,
      SVC_WORKER_TOKEN: "token",
      SVC_WEBHOOK_SECRET: "webhook",
      SVC_WORKER_URL: `http://127.0.0.1:${worker}`,
      SVC_ADMIN_PASSWORD_HASH: hash.stdout.trim(),
      SVC_CACHE_DIR: join(folder, "cache"),
      SVC_SCRATCH_DIR: join(folder, "scratch"),
      SVC_LOG_LEVEL: "warn",
    };
    const working = start(BINARY, ["worker"], { ...env, PORT: String(worker) });
    const serving = start(BINARY, ["web"], { ...env, PORT: String(web) });
    await answers(`http://127.0.0.1:${worker}/`, working.child, working.log);
    await answers(`http://127.0.0.1:${web}/livez`, serving.child, serving.log);
    return { url: `http://127.0.0.1:${web}`, password: PASSWORD, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

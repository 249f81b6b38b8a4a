import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { spawnOwned, type Owned } from "./owned";

export const BINARY =
  process.env.LAKEMILL_TEST_BINARY ?? join(process.env.CARGO_TARGET_DIR ?? "../target", "debug/lakemill");
const START_MS_MAX = 60_000;
const END_MS_MAX = 20_000;

/** A service in a temporary folder of its own, started like `lakemill up`. */
export interface Instance {
  url: string;
  password: string;
  /** The folder with objects, queue and secrets. */
  folder: string;
  /** Stops the service; its folder stays for a restart. */
  stop: () => Promise<void>;
  /** Restarts it on the same folder and port. */
  start: () => Promise<void>;
  /** Stops it and removes its folder. */
  remove: () => Promise<void>;
}

/** A fixture of Playwright: what `start` starts, once for each of its workers. */
export function workerFixture<T extends { remove: () => Promise<void> }>(start: () => Promise<T>, timeout: number) {
  const started = async ({}: object, use: (value: T) => Promise<void>) => {
    const value = await start();
    await use(value);
    await value.remove();
  };
  return [started, { scope: "worker", timeout }] satisfies [typeof started, { scope: "worker"; timeout: number }];
}

export async function instance(args: string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Instance> {
  const folder = await mkdtemp(join(tmpdir(), "lakemill-ui-"));
  const found: Instance = { url: "", password: "", folder, stop, start, remove };
  let child: Owned | undefined;

  async function start(): Promise<void> {
    const port = found.url ? new URL(found.url).port : "0";
    const started = spawnOwned(BINARY, ["up", "--data", folder, "--port", port, "--worker-port", "0", ...args], {
      env: { ...process.env, SVC_LOG_LEVEL: process.env.SVC_LOG_LEVEL ?? "warn", ...env },
    });
    child = started;
    const log: string[] = [];
    createInterface({ input: started.stderr }).on("line", (line) => log.push(line));
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`lakemill up didn't start:\n${log.join("\n")}`)), START_MS_MAX);
      started.once("exit", (status) => reject(new Error(`lakemill up ended with ${status}:\n${log.join("\n")}`)));
      createInterface({ input: started.stdout }).on("line", (line) => {
        const [name, value] = line.trim().split(/\s+/);
        if (name === "open" && value) found.url = value;
        if (name === "password" && value) found.password = value;
        // The last line of its output at startup.
        if (name === "its") {
          clearTimeout(timer);
          resolve();
        }
      });
    });
  }

  async function stop(): Promise<void> {
    const ending = child;
    child = undefined;
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return;
    const ended = new Promise((resolve) => ending.once("exit", resolve));
    ending.kill("SIGTERM");
    const timer = setTimeout(() => ending.kill("SIGKILL"), END_MS_MAX);
    await ended;
    clearTimeout(timer);
  }

  async function remove(): Promise<void> {
    await stop();
    await rm(folder, { recursive: true, force: true });
  }

  await start();
  return found;
}

import { spawn, type ChildProcess, type SpawnOptions } from "node:child_process";
import type { Readable } from "node:stream";

/** A process with captured output. */
export type Owned = ChildProcess & { stdout: Readable; stderr: Readable };

/**
 * Starts a program that the kernel kills when this process has ended, however it ended. Node spawns from its main
 * thread, which lives as long as the process: the kernel's signal is tied to the thread.
 */
export function spawnOwned(program: string, args: string[], options: SpawnOptions): Owned {
  const words = ["--pdeathsig", "KILL", "--", program, ...args];
  return spawn("setpriv", words, { ...options, stdio: ["ignore", "pipe", "pipe"] });
}

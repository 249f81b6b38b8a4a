import { expect, it } from "vitest";
import { holding, unlessHeld } from "./held";

const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

it("requests for a slug wait while it is changed, and fail without being sent once it is gone", async () => {
  let rename: () => void = () => undefined;
  let leave: () => void = () => undefined;
  const renamed = holding(
    "old",
    () => new Promise<void>((resolve) => (rename = resolve)),
    () => new Promise<void>((resolve) => (leave = resolve)),
  );
  const sent: string[] = [];
  const send = (path: string) =>
    unlessHeld(path).then(
      () => sent.push(path),
      (error: unknown) => sent.push(`${path}: ${(error as { code: string }).code}`),
    );
  void send("/api/p/old/jobs?limit=50");
  await send("/api/p/older/jobs");
  expect(sent).toEqual(["/api/p/older/jobs"]);
  rename();
  await soon();
  await send("/api/p/old/status");
  expect(sent.slice(1)).toEqual([
    "/api/p/old/jobs?limit=50: pipeline_not_found",
    "/api/p/old/status: pipeline_not_found",
  ]);
  leave();
  await renamed;
  // Another pipeline may get the slug.
  await send("/api/p/old/tables");
  expect(sent.at(-1)).toBe("/api/p/old/tables");
});

it("requests go on after a change that failed", async () => {
  const failing = holding("old", () => Promise.reject(new Error("busy")), soon);
  const waiting = unlessHeld("/api/p/old/jobs");
  await expect(failing).rejects.toThrow("busy");
  await expect(waiting).resolves.toBeUndefined();
});

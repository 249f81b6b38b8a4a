import { expect, it, vi } from "vitest";
import { collect } from "./download";

it("a download is collected completely and reports its progress", async () => {
  const progress = vi.fn();
  const file = await collect(new Response("a,b\n1,2\n"), progress, 100);
  expect(await file.text()).toBe("a,b\n1,2\n");
  expect(progress).toHaveBeenLastCalledWith(8);
});

it("a download above the limit is rejected, with the limit in the error", async () => {
  await expect(collect(new Response("x".repeat(20)), () => undefined, 10)).rejects.toThrow(/larger than 10 B/);
});

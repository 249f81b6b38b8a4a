import { QueryObserver } from "@tanstack/preact-query";
import { expect, test } from "vitest";
import { FreshQueryClient } from "./query-client";

const KEY = ["lake", "folders/"];

/** A query on screen whose answers are given by hand. */
function observed(client: FreshQueryClient) {
  const requests: ((answer: string) => void)[] = [];
  const queryFn = () => new Promise<string>((resolve) => requests.push(resolve));
  const leave = new QueryObserver(client, { queryKey: KEY, queryFn }).subscribe(() => undefined);
  return { requests, leave };
}

test("the first fetch is repeated if a change was made while it was in flight", async () => {
  const client = new FreshQueryClient();
  const { requests, leave } = observed(client);
  await expect.poll(() => requests.length).toBe(1);
  const invalidated = client.invalidateQueries({ queryKey: ["lake"] });
  requests[0]?.("before the change");
  await expect.poll(() => requests.length).toBe(2);
  requests[1]?.("after the change");
  await invalidated;
  expect(client.getQueryData(KEY)).toBe("after the change");
  leave();
});

test("invalidation refetches a loaded query once and leaves other keys alone", async () => {
  const client = new FreshQueryClient();
  const { requests, leave } = observed(client);
  await expect.poll(() => requests.length).toBe(1);
  requests[0]?.("first");
  await expect.poll(() => client.getQueryData(KEY)).toBe("first");
  await client.invalidateQueries({ queryKey: ["p"] });
  const invalidated = client.invalidateQueries({ queryKey: ["lake"] });
  await expect.poll(() => requests.length).toBe(2);
  requests[1]?.("second");
  await invalidated;
  expect([client.getQueryData(KEY), requests.length]).toEqual(["second", 2]);
  leave();
});

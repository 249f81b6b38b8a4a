import { beforeEach, expect, it, vi } from "vitest";
import { ApiFailure } from "../api/failure";

const calls = vi.hoisted(() => ({ create: vi.fn(), saveDraft: vi.fn(), statesOf: vi.fn(), textOf: vi.fn() }));
vi.mock("../api/dashboards", () => calls);
vi.mock("./starter", () => ({ starter: () => Promise.resolve("version: 2\n") }));

const { makeDraft } = await import("./make");
const { addToDashboard } = await import("./add");
const lost = () => new ApiFailure(0, "unreachable", "the service can't be reached");
const exists = () => new ApiFailure(412, "precondition_failed", "it exists");
const table = { name: "sales" } as Parameters<typeof makeDraft>[2];

beforeEach(() => Object.values(calls).forEach((call) => call.mockReset()));

it("a retry after a lost answer takes the dashboard that was created", async () => {
  calls.saveDraft.mockRejectedValueOnce(lost()).mockRejectedValueOnce(exists());
  await expect(makeDraft("shop", "sales", table)).rejects.toThrow("reached");
  await expect(makeDraft("shop", "sales", table)).resolves.toBeUndefined();
  calls.create.mockRejectedValueOnce(lost());
  calls.create.mockRejectedValueOnce(new ApiFailure(409, "already_exists", "taken"));
  await expect(makeDraft("shop", "empty", undefined)).rejects.toThrow("reached");
  await expect(makeDraft("shop", "empty", undefined)).resolves.toBeUndefined();
});

it("a dashboard of somebody else isn't taken", async () => {
  calls.saveDraft.mockRejectedValue(exists());
  await expect(makeDraft("shop", "theirs", table)).rejects.toThrow("it exists");
});

it("a retry after a lost answer adds a chart once", async () => {
  const choice = { source: { table: "sales" }, kind: "bar", aggregate: "count" } as const;
  const panel = { choice, sql: "SELECT 1", title: "Rows", max: undefined };
  calls.saveDraft.mockRejectedValueOnce(lost());
  await expect(addToDashboard("shop", { name: "new", title: "New" }, panel)).rejects.toThrow("reached");
  const text = calls.saveDraft.mock.calls[0]?.[2] as string;
  calls.statesOf.mockResolvedValue({ draft: true, published: false });
  calls.textOf.mockResolvedValue({ text, etag: "1" });
  await expect(addToDashboard("shop", { name: "new", title: "New" }, panel)).resolves.toBe("rows");
  expect(calls.saveDraft).toHaveBeenCalledOnce();
});

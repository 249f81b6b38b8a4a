import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiFailure } from "./failure";
import { whenIdle } from "./when-idle";

const busy = () => Promise.reject(new ApiFailure(409, "pipeline_busy", "the pipeline `p` has a run in progress"));
const never = new AbortController().signal;

describe("an operation on an idle pipeline", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is repeated until no run is in progress", async () => {
    const operation = vi.fn<() => Promise<string>>().mockResolvedValue("done");
    operation.mockImplementationOnce(busy).mockImplementationOnce(busy);
    const refused = vi.fn();
    const result = whenIdle(operation, never, refused);
    await vi.runAllTimersAsync();
    expect(await result).toBe("done");
    expect(operation).toHaveBeenCalledTimes(3);
    expect(refused).toHaveBeenCalledTimes(2);
  });
  it("fails at once for another reason", async () => {
    const failure = new ApiFailure(409, "already_exists", "the pipeline `q` already exists");
    const operation = vi.fn(() => Promise.reject(failure));
    await expect(whenIdle(operation, never, vi.fn())).rejects.toBe(failure);
    expect(operation).toHaveBeenCalledOnce();
  });
  it("is not repeated once nobody waits", async () => {
    const operation = vi.fn(busy);
    const removed = new AbortController();
    void whenIdle(operation, removed.signal, vi.fn());
    await vi.advanceTimersByTimeAsync(0);
    removed.abort();
    await vi.runAllTimersAsync();
    expect(operation).toHaveBeenCalledOnce();
  });
});

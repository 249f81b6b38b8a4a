import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, it, vi } from "vitest";
import { ApiFailure } from "../api/failure";
import { toast, Toasts } from "./toasts";

it("a failure is told once, and no longer when another attempt has succeeded", async () => {
  const root = document.createElement("div");
  render(<Toasts />, root);
  const shown = async (run: () => void) => {
    await act(run);
    return [...root.querySelectorAll(".toast")].map((node) => node.textContent);
  };
  await shown(() => toast.failed("Couldn't create the dashboard", new Error("the service can't be reached")));
  expect(await shown(() => toast.failed("Couldn't create the dashboard", new Error("it is busy")))).toEqual([
    "Couldn't create the dashboard: it is busy",
  ]);
  expect(await shown(() => toast.resolved("Couldn't create the dashboard"))).toEqual([]);
  const problems = ["a", "b", "c", "d"].map((message) => ({ message, path: "" })) as never;
  const refused = new ApiFailure(422, "invalid_config", "the config has problems", { problems });
  expect(await shown(() => toast.failed("Couldn't upload the files", refused))).toEqual([
    "Couldn't upload the files: the config has problems: a; b; c",
  ]);
  await shown(() => toast.resolved("Couldn't upload the files"));
  render(null, root);
});

afterEach(() => vi.useRealTimers());

it("a confirmation goes by itself, but not while it is pointed at; an error stays", async () => {
  vi.useFakeTimers();
  const root = document.createElement("div");
  document.body.append(root);
  render(<Toasts />, root);
  const after = async (ms: number, run: () => void = () => undefined) => {
    await act(() => {
      run();
      vi.advanceTimersByTime(ms);
    });
    return [...root.querySelectorAll(".toast")].map((node) => node.textContent);
  };
  const box = root.querySelector(".toasts");
  const point = (name: string) => () => box?.dispatchEvent(new MouseEvent(name));
  const both = ["Saved", "Couldn't save: it is busy"];
  await after(0, () => {
    toast.done("Saved");
    toast.failed("Couldn't save", new Error("it is busy"));
  });
  expect(await after(5_000)).toEqual(both);
  expect(await after(60_000, point("mouseenter"))).toEqual(both);
  expect(await after(5_000, point("mouseleave"))).toEqual(both);
  expect(await after(1_001)).toEqual(["Couldn't save: it is busy"]);
  expect(await after(600_000)).toEqual(["Couldn't save: it is busy"]);
  render(null, root);
  root.remove();
});

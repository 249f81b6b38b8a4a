import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
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
  render(null, root);
});

import { render } from "preact";
import { afterEach, expect, it, vi } from "vitest";
import { areKept, guarded, leaving, useUnsaved } from "./unsaved";

const root = document.createElement("div");
const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

function Typed({ dirty, bound }: { dirty: boolean; bound?: "view" | "page" | "kept" }) {
  useUnsaved("the config", dirty, bound);
  return null;
}

afterEach(() => {
  render(null, root);
  leaving.value = undefined;
});

it("asks nothing without unsaved changes, or while the view stays open", async () => {
  const go = vi.fn();
  guarded(go, "/lake");
  expect(go).toHaveBeenCalledOnce();
  render(<Typed dirty />, root);
  guarded(go, `${location.pathname}?tab=rows`);
  expect(go).toHaveBeenCalledTimes(2);
  await soon();
  expect(leaving.value).toBeUndefined();
});

it("leaving a view with unsaved text requires confirmation", async () => {
  const go = vi.fn();
  render(<Typed dirty />, root);
  guarded(go, "/lake");
  await soon();
  expect(go).not.toHaveBeenCalled();
  leaving.value?.go();
  expect(go).toHaveBeenCalledWith("/lake", undefined);
});

it("text that was just saved needs no confirmation", async () => {
  const go = vi.fn();
  render(<Typed dirty />, root);
  guarded(go, "/lake");
  render(<Typed dirty={false} />, root);
  await soon();
  expect([go.mock.calls.length, leaving.value]).toEqual([1, undefined]);
});

it("leaving changes that the browser keeps asks, and doesn't call them lost", async () => {
  const closing = () => {
    const event = new Event("beforeunload", { cancelable: true });
    window.dispatchEvent(event);
    return event.defaultPrevented;
  };
  render(<Typed dirty />, root);
  expect([areKept(), closing()]).toEqual([false, true]);
  render(<Typed dirty bound="kept" />, root);
  guarded(vi.fn(), "/lake");
  await soon();
  expect(leaving.value).toBeDefined();
  expect([areKept(), closing()]).toEqual([true, false]);
});

it("unsaved changes in another view don't block navigation", () => {
  const go = vi.fn();
  render(<Typed dirty bound="page" />, root);
  guarded(go, "/lake");
  expect(go).toHaveBeenCalledOnce();
});

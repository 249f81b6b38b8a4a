import { render } from "preact";
import { afterEach, expect, it, vi } from "vitest";
import { guarded, leaving, useUnsaved } from "./unsaved";

const root = document.createElement("div");
const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

function Typed({ dirty, bound }: { dirty: boolean; bound?: "view" | "page" }) {
  useUnsaved("the config", dirty, bound);
  return null;
}

afterEach(() => {
  render(null, root);
  leaving.value = undefined;
});

it("nothing is asked where nothing is unsaved, or the view stays", async () => {
  const go = vi.fn();
  guarded(go, "/lake");
  expect(go).toHaveBeenCalledOnce();
  render(<Typed dirty />, root);
  guarded(go, `${location.pathname}?tab=rows`);
  expect(go).toHaveBeenCalledTimes(2);
  await soon();
  expect(leaving.value).toBeUndefined();
});

it("a view with unsaved text is left only by a word", async () => {
  const go = vi.fn();
  render(<Typed dirty />, root);
  guarded(go, "/lake");
  await soon();
  expect(go).not.toHaveBeenCalled();
  leaving.value?.();
  expect(go).toHaveBeenCalledWith("/lake", undefined);
});

it("what was saved just before is not asked about", async () => {
  const go = vi.fn();
  render(<Typed dirty />, root);
  guarded(go, "/lake");
  render(<Typed dirty={false} />, root);
  await soon();
  expect([go.mock.calls.length, leaving.value]).toEqual([1, undefined]);
});

it("what goes on in other views, too, doesn't hold anybody in one", () => {
  const go = vi.fn();
  render(<Typed dirty bound="page" />, root);
  guarded(go, "/lake");
  expect(go).toHaveBeenCalledOnce();
});

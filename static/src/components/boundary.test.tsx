import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
import { connection } from "../api/connection";
import { Boundary } from "./boundary";
import { toast, Toasts } from "./toasts";

const root = document.createElement("div");
const gone = new TypeError("Failed to fetch dynamically imported module: http://localhost/assets/lake-abc.js");
const buttons = () =>
  [...root.querySelectorAll("button")].map((node) => node.textContent || node.getAttribute("aria-label"));

function Throws({ error }: { error: Error }): never {
  throw error;
}

async function shown(error: Error): Promise<string> {
  await act(() => render(null, root));
  await act(() =>
    render(
      <Boundary>
        <Throws error={error} />
      </Boundary>,
      root,
    ),
  );
  return root.textContent ?? "";
}

it("a view of another version asks to reload the page", async () => {
  expect(await shown(gone)).toContain("Lakemill was updated. Reload the page.");
  expect(await shown(new Error("Unable to preload CSS for /assets/lake-abc.css"))).toContain("Lakemill was updated");
  expect(buttons()).toEqual(["Reload"]);
});

it("a view that a service that is down can't deliver, or that has a bug, isn't said to be of another version", async () => {
  expect(await shown(new Error("x is undefined"))).toBe("Couldn't show this viewx is undefinedReload");
  connection.state.value = "unreachable";
  expect(await shown(gone)).toContain("the service can't be reached");
  connection.state.value = "ok";
});

it("an action whose code is of another version offers to reload the page", async () => {
  await act(() => render(<Toasts />, root));
  await act(() => toast.failed("Couldn't open all.zip", gone));
  expect(root.textContent).toContain("Couldn't open all.zip: Lakemill was updated. Reload the page.");
  expect(buttons()).toEqual(["Reload", "Dismiss"]);
  render(null, root);
});

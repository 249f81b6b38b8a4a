import { afterEach, expect, it, vi } from "vitest";
import { connection } from "../api/connection";
import { session } from "../api/session";
import { uploads } from ".";

afterEach(() => {
  connection.state.value = "ok";
  vi.restoreAllMocks();
});

it("no attempt is used while the store is unavailable, and uploads resume automatically", () => {
  const open = vi.spyOn(XMLHttpRequest.prototype, "open").mockImplementation(() => undefined);
  vi.spyOn(XMLHttpRequest.prototype, "setRequestHeader").mockImplementation(() => undefined);
  vi.spyOn(XMLHttpRequest.prototype, "send").mockImplementation(() => undefined);
  session.state.value = "in";
  connection.state.value = "failing";
  const {
    uploads: [upload],
  } = uploads.add([{ key: "a.csv", file: new Blob(["a"]) }]);
  expect(upload).toMatchObject({ state: "waiting", attempts: 0 });
  connection.state.value = "ok";
  expect(open).toHaveBeenCalledTimes(1);
  expect(upload?.state).toBe("sending");
});

it("a file dropped outside of a drop zone doesn't replace the page", () => {
  const drop = (target: Element, types: string[]) => {
    const event = Object.assign(new Event("drop", { bubbles: true, cancelable: true }), { dataTransfer: { types } });
    target.dispatchEvent(event);
    return event.defaultPrevented;
  };
  const chooser = document.body.appendChild(Object.assign(document.createElement("input"), { type: "file" }));
  expect(drop(document.body, ["Files"])).toBe(true);
  expect(drop(document.body, ["text/plain"])).toBe(false);
  expect(drop(chooser, ["Files"])).toBe(false);
});

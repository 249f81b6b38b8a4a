import { expect, it } from "vitest";
import { isPersisted, isString, isStrings, persisted, persistedAcrossTabs } from "./persisted";

it("a list shared by tabs has the items added by each tab", () => {
  const own = persistedAcrossTabs<string[]>("tabs", [], isStrings);
  own.value = ["mine"];
  localStorage.setItem("lakemill.tabs", JSON.stringify(["theirs", "mine"]));
  window.dispatchEvent(new StorageEvent("storage", { key: "lakemill.tabs" }));
  own.value = ["next", ...own.value];
  expect(JSON.parse(localStorage.getItem("lakemill.tabs") ?? "")).toEqual(["next", "theirs", "mine"]);
  localStorage.removeItem("lakemill.tabs");
  window.dispatchEvent(new StorageEvent("storage", { key: "lakemill.tabs" }));
  expect(own.value).toEqual([]);
});

it("a value that is too long is not stored, nor is its former state", () => {
  const text = persisted("long", "", isString);
  text.value = "short";
  expect(isPersisted("long")).toBe(true);
  text.value = "x".repeat(600_000);
  expect([text.value.length, isPersisted("long")]).toEqual([600_000, false]);
});

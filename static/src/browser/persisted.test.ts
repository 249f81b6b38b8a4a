import { expect, it } from "vitest";
import { isStrings, persistedAcrossTabs } from "./persisted";

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

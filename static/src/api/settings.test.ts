import { QueryClient } from "@tanstack/preact-query";
import { afterEach, expect, it, vi } from "vitest";
import { keys } from "./queries";
import { changeStars, renameStar } from "./settings";

/** A service whose settings another client changes just before the first write. */
function service(elsewhere?: object) {
  let [settings, tag] = [{ workspace_name: "Old", display_name: "", starred: ["a", "b"] }, 1];
  let writes = 0;
  const answer = (status: number, body: object) =>
    new Response(JSON.stringify(body), {
      status,
      headers: { "Content-Type": "application/json", ETag: `"${String(tag)}"` },
    });
  vi.stubGlobal("fetch", async (request: Request) => {
    if (request.method === "GET") return answer(200, settings);
    writes += 1;
    if (writes === 1 && elsewhere) [settings, tag] = [{ ...settings, ...elsewhere }, tag + 1];
    if (request.headers.get("If-Match") !== `"${String(tag)}"`) {
      return answer(412, { error: "precondition_failed", message: "it was changed" });
    }
    [settings, tag] = [(await request.json()) as typeof settings, tag + 1];
    return answer(200, settings);
  });
  return { stored: () => settings, writes: () => writes };
}

afterEach(() => vi.unstubAllGlobals());

it("starring keeps concurrent changes by other users", async () => {
  const { stored } = service({ workspace_name: "New", starred: ["b"] });
  const cache = new QueryClient();
  await changeStars(cache, (starred) => [...starred, "c"]);
  expect(stored()).toEqual({ workspace_name: "New", display_name: "", starred: ["b", "c"] });
  expect(cache.getQueryData(keys.settings)).toEqual(stored());
});

it("a star follows a renamed pipeline; renaming an unstarred one writes nothing", async () => {
  const { stored, writes } = service();
  const cache = new QueryClient();
  await renameStar(cache, "x", "y");
  expect(writes()).toBe(0);
  await renameStar(cache, "a", "z");
  expect(stored().starred).toEqual(["z", "b"]);
});

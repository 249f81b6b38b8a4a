import { afterEach, expect, it, vi } from "vitest";
import { client, dashboardsQuery } from "../../api/queries";
import { documentQuery } from "./queries";

afterEach(() => {
  vi.unstubAllGlobals();
  client.clear();
});

const answering = (listed: unknown[]) =>
  vi.stubGlobal("fetch", (request: Request) =>
    Promise.resolve(
      request.url.endsWith("/dashboards")
        ? Response.json({ dashboards: listed })
        : new Response("version: 2\ntitle: One\n", { headers: { ETag: '"1"' } }),
    ),
  );

it("published and deleted dashboards of another browser are seen despite a cached listing", async () => {
  answering([]);
  const { queryKey } = dashboardsQuery("s");
  await client.fetchQuery(dashboardsQuery("s"));
  answering([{ name: "a", published: true, draft: false }]);
  expect((await client.fetchQuery(documentQuery("s", "a"))).etag).toBe('"1"');
  expect(client.getQueryData(queryKey)?.dashboards).toHaveLength(1);
  client.removeQueries({ queryKey: documentQuery("s", "a").queryKey });
  answering([]);
  await expect(client.fetchQuery(documentQuery("s", "a"))).rejects.toMatchObject({ code: "dashboard_not_found" });
});

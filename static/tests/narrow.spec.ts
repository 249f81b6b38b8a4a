import { config, CSV, everything, published } from "./support/sales";
import { expect, test, type Page } from "./support/test";

const WIDTH = 390;
const SELECT_PX_MIN = 60;

/** Numbers, times, selects and buttons that are cut off, or lie outside of the window where nothing scrolls sideways. */
function cutOff(page: Page): Promise<string[]> {
  return page.evaluate(
    ([width, selectMin]) => {
      const scrollsSideways = (node: Element | null): boolean => {
        if (!node) return false;
        const { overflowX } = getComputedStyle(node);
        return overflowX === "auto" || overflowX === "scroll" || scrollsSideways(node.parentElement);
      };
      return [
        ...document.querySelectorAll<HTMLElement>(
          "main .num, main time, main .dash-kpi-value, main .button, main select",
        ),
      ]
        .filter((node) => node.checkVisibility())
        .filter((node) => {
          const { left, right } = node.getBoundingClientRect();
          const cuts = [node, node.closest<HTMLElement>(".cut")].filter((one) => one !== null);
          const clipped = cuts.some(
            (one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== "inline",
          );
          const squeezed = node.matches("select.input") && node.clientWidth < selectMin;
          const outside = right > left && (left < -1 || right > width + 1);
          return clipped || squeezed || (outside && !scrollsSideways(node.closest(".shell > main *")));
        })
        .map((node) => `${node.className}: ${node.textContent}`);
    },
    [WIDTH, SELECT_PX_MIN] as const,
  );
}

test("on a narrow screen nothing overflows, and no number is cut off", async ({ page, api }) => {
  test.slow();
  await published(api, "narrow", everything());
  await api.post("/api/pipelines", { slug: "narrow-none", template: "blank" });
  await api.pipeline("narrow-wrong", { ...config, mappings: [{ table: "sales" }] }, { "sales.csv": CSV });
  const { jobs } = await api.get<{ jobs: { job_id: string }[] }>("/api/p/narrow/jobs");
  await page.setViewportSize({ width: WIDTH, height: 844 });
  for (const path of [
    "/",
    "/new",
    "/lake?prefix=pipelines%2Fnarrow%2F",
    "/settings",
    "/p/narrow",
    "/p/narrow/data/sales",
    "/p/narrow/data/sales?tab=schema",
    "/p/narrow/data/sales?tab=sources",
    "/p/narrow/data/sales?tab=partitions",
    "/p/narrow/data/sales?tab=versions",
    "/p/narrow/query",
    "/p/narrow/dashboards",
    "/p/narrow/dashboards/all",
    "/p/narrow/dashboards/all/edit",
    "/p/narrow/jobs",
    `/p/narrow/jobs/${jobs[0]?.job_id ?? ""}`,
    "/p/narrow/config",
    "/p/narrow-none",
    "/p/narrow-none/data",
    "/p/narrow-none/jobs",
    "/p/narrow-wrong",
    "/p/narrow-wrong/jobs",
  ]) {
    await page.goto(path);
    await expect(page.locator("main h1, main h2, dialog h2").first()).toBeAttached();
    await expect(page.locator(".skeleton")).toHaveCount(0);
    expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBe(WIDTH);
    expect(await cutOff(page), path).toEqual([]);
  }
});

test("a table's head has one row of actions, which stays where it is when the chart opens", async ({ page, api }) => {
  await api.pipeline("narrow-head", config, { "sales.csv": CSV });
  for (const width of [WIDTH, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/p/narrow-head/data/sales");
    const actions = page.locator(".data-head .button");
    await expect(actions).toHaveCount(4);
    const places = () =>
      actions.evaluateAll((nodes) =>
        nodes.map((node) => {
          const { x, y, width, height } = node.getBoundingClientRect();
          return { x, y, width, height };
        }),
      );
    const before = await places();
    expect(new Set(before.map(({ y }) => y)).size, `rows at ${width} px`).toBe(1);
    await page.getByRole("button", { name: "Chart", exact: true }).click();
    await expect(page.getByRole("region", { name: "Chart of the table" })).toBeVisible();
    expect(await places()).toEqual(before);
  }
});

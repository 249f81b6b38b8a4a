import { describe, expect, it } from "vitest";
import { deletionSummary } from "./manage";

const files = (n: number, size = 1) => Array.from({ length: n }, (_, at) => ({ key: `f${at}`, size }) as never);

describe("delete summary", () => {
  it("has counts and names", () =>
    expect(
      deletionSummary({
        lake: { files: files(412, 1024), whole: true },
        tables: [
          { name: "a", rows: 2 },
          { name: "b", rows: 3 },
        ],
        dashboards: 1,
        queries: 2,
      }),
    ).toEqual([
      "412 files in the lake (412 KiB)",
      "2 tables with 5 rows: a, b",
      "1 dashboard and 2 saved queries",
      "the config and the job history",
    ]));
  it("has a lower bound if there is too much to count", () =>
    expect(deletionSummary({ lake: { files: files(40), whole: false } })[0]).toMatch(/^at least 40 files/));
  it("describes the loss before the counts are known", () =>
    expect(deletionSummary({ tables: [] }).slice(0, 3)).toEqual([
      "all files in the lake",
      "0 tables",
      "all dashboards and all saved queries",
    ]));
});

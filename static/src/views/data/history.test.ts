import { describe, expect, it } from "vitest";
import { exact } from "../../format/time";
import { versionText } from "./history";

const commit = {
  sequence: 2,
  committed_at: "2026-01-31T12:00:00.000Z",
  job_id: "j",
  rows: 1200,
  files: 1,
  bytes: 1,
  sources: 2,
  sources_archived: 0,
  restored: null,
};

describe("a version of a table", () => {
  const at = exact(new Date(commit.committed_at));
  it("is told by its time and rows", () => expect(versionText(commit)).toBe(`${at} · 1,200 rows`));
  it("tells archived sources", () =>
    expect(versionText({ ...commit, sources_archived: 1 })).toBe(`${at} · 1,200 rows, 1 source archived`));
});

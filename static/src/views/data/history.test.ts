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

describe("table version", () => {
  const at = exact(new Date(commit.committed_at));
  it("shows its time and rows", () => expect(versionText(commit)).toBe(`${at} · 1,200 rows`));
  it("mentions archived sources", () =>
    expect(versionText({ ...commit, sources_archived: 1 })).toBe(`${at} · 1,200 rows, 1 source archived`));
});

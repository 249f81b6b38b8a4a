import { beforeEach, describe, expect, it } from "vitest";
import { ConfigDraft } from "./draft";

const SLUG = "p";
const KEY = `lakemill.draft.config.${SLUG}`;

const left = (text: string, etag: string) => {
  localStorage.setItem(KEY, JSON.stringify({ text, base: "old", etag, at: "2026-01-01T00:00:00Z" }));
  return new ConfigDraft(SLUG);
};

const kept = (): string | null => localStorage.getItem(KEY);

beforeEach(() => localStorage.clear());

describe("unsaved text of an earlier page load", () => {
  it("is restored if the config hasn't changed", () => {
    const draft = left("mine", "1");
    draft.arrived({ text: "old", etag: "1" });
    expect(draft.text.value).toBe("mine");
    expect(draft.offeredDraft.value).toBeUndefined();
  });

  it("is offered for merging if the config has changed, also after further changes", () => {
    const draft = left("mine", "1");
    draft.arrived({ text: "theirs", etag: "2" });
    draft.arrived({ text: "theirs, too", etag: "3" });
    draft.keeping()();
    expect(draft.offeredDraft.value?.text).toBe("mine");
    expect(draft.text.value).toBe("theirs, too");
    expect(draft.base.value?.etag).toBe("3");
    expect(kept()).toContain("mine");
  });

  it("is dropped once it is saved or discarded", () => {
    const same = left("mine", "1");
    same.arrived({ text: "theirs", etag: "2" });
    same.arrived({ text: "mine", etag: "3" });
    expect(same.offeredDraft.value).toBeUndefined();
    expect(kept()).toBeNull();

    const thrown = left("mine", "1");
    thrown.arrived({ text: "theirs", etag: "2" });
    thrown.discard();
    expect(thrown.text.value).toBe("theirs");
    expect(kept()).toBeNull();
  });
});

it("unsaved text that the browser can't store isn't called kept", () => {
  const draft = new ConfigDraft(SLUG);
  draft.arrived({ text: "old", etag: "1" });
  const stop = draft.keeping();
  const isKeptWith = (text: string) => {
    draft.text.value = text;
    window.dispatchEvent(new Event("pagehide"));
    return [draft.isKept.value, kept() !== null];
  };
  expect(isKeptWith("x".repeat(600_000))).toEqual([false, false]);
  expect(isKeptWith("short")).toEqual([true, true]);
  stop();
});

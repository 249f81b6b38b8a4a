import { expect, it } from "vitest";
import { durations, keptBy, keptText } from "./keep-history";

it("a table keeps versions as its config says", () => {
  expect(keptBy({})).toBe("0s");
  expect(keptBy({ publish: ["delta"] })).toBe("1h");
  expect(keptBy({ keep_history: "7d", publish: ["delta"] })).toBe("7d");
});

it("durations are offered in order, with the present one as it is written", () => {
  expect(durations("0s").map(keptText)).toEqual(["not kept", "1 day", "7 days", "30 days", "90 days", "365 days"]);
  expect(durations("12h").map(keptText).slice(0, 3)).toEqual(["not kept", "12 hours", "1 day"]);
  expect(durations("24h").map(keptText).slice(0, 3)).toEqual(["not kept", "24 hours", "7 days"]);
});

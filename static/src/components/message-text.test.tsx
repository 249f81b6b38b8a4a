import { render } from "preact";
import { expect, it } from "vitest";
import { MessageText } from "./message-text";

it("formats of times are written as people write them, with the config's own as the title", () => {
  const root = document.createElement("div");
  render(<MessageText text="matches none of `%m/%d/%Y`, `iso`, `%q` or `day`" />, root);
  expect(root.textContent).toBe("matches none of MM/DD/YYYY, iso, %q or day");
  expect([...root.querySelectorAll("code")].map(({ title }) => title)).toEqual(["%m/%d/%Y", "", "", ""]);
  render(null, root);
});

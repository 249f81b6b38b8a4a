import { expect, test } from "./support/test";

const CONFIG = {
  version: 1,
  mappings: [
    {
      table: "notes",
      files: ["*.csv"],
      csv: { quotes: "strict" },
      columns: [
        { name: "id", type: "int64", nullable: false },
        { name: "text", type: "string" },
      ],
      rejects: { max_ratio: 1 },
    },
  ],
};

/** 100,000 lines; `bad` is the number of the rejected line. */
function large(bad: number): string {
  const lines = Array.from({ length: 99_999 }, (_, at) => `${at},text ${at}`);
  lines[bad - 2] = "refused,here";
  return `id,text\n${lines.join("\n")}\n`;
}

test("a rejected row links to its exact line, also far down and below quoted line breaks", async ({ page, api }) => {
  const quoted = 'id,text\n1,"one\ntwo\nthree"\n2,"a\n\nb"\nrefused,below\n3,c\n';
  await api.pipeline("lineage-far", CONFIG, { "large.csv": large(87_654), "quoted.csv": quoted });
  for (const [file, line, text] of [
    ["large.csv", 87_654, "refused,here"],
    ["quoted.csv", 8, "refused,below"],
  ] as const) {
    await page.goto("/p/lineage-far/data/notes?tab=rejected");
    const row = page.locator(".grid-rows [role=row]").filter({ hasText: file });
    await row.getByRole("link").first().click();
    await expect(page).toHaveURL(new RegExp(`file=.*${file}.*line=${line}`));
    const marked = page.locator(".lake-line.marked");
    await expect(marked).toContainText(text);
    await expect(marked).toBeInViewport();
  }
});

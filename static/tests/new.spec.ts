import { PAYLOADS } from "./support/payloads";
import { expect, expectAccessible, test, type Api, type Page } from "./support/test";

const choose = (page: Page, name: string, text: string | Buffer) =>
  page.getByLabel("CSV files").setInputFiles({ name, mimeType: "text/csv", buffer: Buffer.from(text) });
const ready = (page: Page) =>
  expect(page.getByRole("button", { name: "Create pipeline" })).toBeVisible({ timeout: 30_000 });

/** The samples' folder; pages of other tests may have left some when they were closed. */
const samples = async (api: Api) =>
  (await api.get<string[]>("/api/pipelines")).filter((slug) => slug.startsWith("draft-"));

/** Semicolons, decimal commas, German dates, one invalid amount. */
function hard(rows: number): Buffer {
  const lines = Array.from({ length: rows }, (_, at) => {
    const amount = at === 9 ? "zwölf" : ((at + 1) * 1.5).toFixed(2).replace(".", ",");
    return `Müller ${at % 7};${String((at % 28) + 1).padStart(2, "0")}.05.2024;${amount}`;
  });
  return Buffer.from(`Kunde;Datum;Betrag\n${lines.join("\n")}\n`, "latin1");
}

test.describe("a pipeline from a CSV", () => {
  test("is proposed, previewed with types, fixed and created", async ({ page, api }) => {
    const before = await samples(api);
    await page.goto("/new");
    await expectAccessible(page);
    await choose(page, "Bestellungen.csv", hard(60));
    await ready(page);
    await page.getByText("Detected format").click();
    await expect(page.getByLabel("Delimiter")).toHaveValue('";"');
    // All are typed except the one amount, which is reported.
    await expect(page.getByLabel("Type of betrag")).toHaveValue('["decimal(18,2)",[]]');
    await expect(page.getByText("1 value of another type: line 11 “zwölf”")).toBeVisible();
    await page.getByLabel("Type of betrag").selectOption({ label: "decimal number (decimal(18,2))" });
    await page.getByLabel("Decimal separator").selectOption({ label: "," });
    await expect(page.getByText("1 of 60 rows would be rejected")).toBeVisible();
    await expect(page.getByRole("region", { name: "Rejected rows" })).toContainText("zwölf");
    await page.getByLabel("Name of Kunde").fill("customer");
    await page.getByLabel("Rejected rows allowed").selectOption({ label: "up to 10% of the rows" });
    await page.getByLabel("URL name").fill("orders-hard");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create pipeline" }).click();
    await expect(page).toHaveURL(/\/p\/orders-hard\/data\/bestellungen\?chart=1/, { timeout: 60_000 });
    const { rows } = await api.get<{ rows: unknown[][] }>("/api/p/orders-hard/tables/bestellungen/rows?limit=2");
    expect(rows[0]).toEqual(["Müller 0", "2024-05-01", "1.50"]);
    const { tables } = await api.get<{ tables: { rows: number }[] }>("/api/p/orders-hard/tables");
    expect(tables[0]?.rows).toBe(59);
    // The sample's files are removed.
    await expect.poll(() => samples(api)).toEqual(before);
  });

  test("says above the data and beside the button which columns lost something", async ({ page }) => {
    const lines = Array.from(
      { length: 40 },
      (_, at) => `${at},0${(at % 9) + 1}/0${(at % 8) + 1}/2025,${at % 2 ? "$" : "€"}5`,
    );
    await page.goto("/new");
    await choose(page, "visits.csv", `id,visited,price\n${lines.join("\n")}\n`);
    await ready(page);
    await expect(page.getByText("2 columns need a look:").first()).toBeInViewport();
    await expect(page.getByText(/price is text: amounts in several currencies/)).toBeVisible();
    await expect(page.getByText("2 columns need a look: visited, price")).toBeVisible();
    await page.getByRole("button", { name: "visited", exact: true }).last().click();
    const type = page.getByLabel("Type of visited");
    await expect(type).toBeFocused();
    await expect(type).toBeInViewport();
    await type.selectOption({ label: "date · MM/DD/YYYY" });
    await expect(page.getByText("1 column needs a look: price")).toBeVisible();
  });

  test("survives Back, with its changes", async ({ page }) => {
    await page.goto("/new");
    await choose(page, "back.csv", "a,b\n1,2\n");
    await ready(page);
    await page.getByLabel("Name of a", { exact: true }).fill("renamed");
    await page.goBack();
    await expect(page.getByText("The proposal for back.csv is still open, with your changes.")).toBeVisible();
    await expect(page.getByRole("button", { name: "Create pipeline" })).toBeHidden();
    await page.goForward();
    await expect(page.getByLabel("Name of a", { exact: true })).toHaveValue("renamed");
    await page.getByRole("button", { name: "Choose other files" }).click();
    await page.getByRole("button", { name: "Continue" }).click();
    await expect(page.getByLabel("Name of a", { exact: true })).toHaveValue("renamed");
  });

  test("says after a reload which files have to be chosen again", async ({ page }) => {
    await page.goto("/new");
    await choose(page, "gone.csv", "a,b\n1,2\n");
    await ready(page);
    await page.reload();
    await expect(page.getByText(/files chosen here are no longer open.* Choose gone\.csv again/)).toBeVisible();
    await choose(page, "gone.csv", "a,b\n1,2\n");
    await ready(page);
    await expect(page.getByText(/no longer open/)).toBeHidden();
  });

  test("checks every file of a table, and loses no row to the footer of one", async ({ page, api }) => {
    const files = {
      "east.csv": "id,amount,by\n1,$5.00,ann\n2,$6.00,bob\n",
      "north.csv": 'id,amount,by\n3,"$1,700.00",cy\n4,N/A,di\nTotal,"$1,700.00",\n',
      "west.csv": "id,amount,by\n5,($8.00),ed\n6,$9.00,flo\n",
    };
    await page.goto("/new");
    await page
      .getByLabel("CSV files")
      .setInputFiles(
        Object.entries(files).map(([name, text]) => ({ name, mimeType: "text/csv", buffer: Buffer.from(text) })),
      );
    await ready(page);
    await expect(page.getByText("All 6 rows of 3 files can be read.")).toBeVisible({ timeout: 30_000 });
    await expect(page.getByText("last rows starting with “Total” skipped")).toBeVisible();
    await page.getByLabel("Table", { exact: true }).fill("sales");
    await page.getByLabel("URL name").fill("three-files");
    await page.getByRole("button", { name: "Create pipeline" }).click();
    await expect(page).toHaveURL(/\/p\/three-files\/data\/sales/, { timeout: 60_000 });
    const { rows } = await api.get<{ rows: unknown[][] }>("/api/p/three-files/tables/sales/rows?limit=10");
    expect(rows.map((row) => row[1])).toEqual(["5.00", "6.00", "1700.00", null, "-8.00", "9.00"]);
  });

  test("makes a column of the words in which the names of the files differ", async ({ page, api }) => {
    const file = (name: string, text: string) => ({ name, mimeType: "text/csv", buffer: Buffer.from(text) });
    await page.goto("/new");
    await page
      .getByLabel("CSV files")
      .setInputFiles([file("sales North 1.csv", "id\n1\n2\n"), file("sales south 1.csv", "id\n3\n")]);
    await ready(page);
    await expect(page.getByText("The names of the files differ: north, south.")).toBeVisible();
    await page.getByRole("button", { name: "Add as a column" }).click();
    await expect(page.getByLabel("Column from file names")).toBeFocused();
    await expect(page.getByText("The names of the files differ")).toBeHidden();
    await page.getByRole("button", { name: "Remove file" }).click();
    await page.getByRole("button", { name: "Add column from file names" }).click();
    await expect(page.getByLabel("Values")).toHaveValue("north, south");
    await expect(page.getByLabel("Values")).toHaveAccessibleDescription(
      "sales North 1.csv: north · sales south 1.csv: south",
    );
    await page.getByLabel("Column from file names").fill("region");
    await expect(page.getByRole("columnheader", { name: /region/ }).first()).toBeVisible({ timeout: 30_000 });
    await page.getByLabel("URL name").fill("by-names");
    await page.getByLabel("Table", { exact: true }).fill("sales");
    await page.getByRole("button", { name: "Create pipeline" }).click();
    await expect(page).toHaveURL(/\/p\/by-names\/data\/sales/, { timeout: 60_000 });
    const { rows } = await api.get<{ rows: unknown[][] }>("/api/p/by-names/tables/sales/rows?sort=id");
    expect(rows).toEqual([
      [1, "north"],
      [2, "north"],
      [3, "south"],
    ]);
  });

  test("makes tables only of what is wanted, and leaves out files that can't be read", async ({ page, api }) => {
    await page.goto("/new");
    await page.getByLabel("CSV files").setInputFiles([
      { name: "orders.csv", mimeType: "text/csv", buffer: Buffer.from("id,n\n1,2\n") },
      { name: "broken.csv", mimeType: "text/csv", buffer: Buffer.from("%PDF-1.7 \u0000\u0001\n\u0000\n") },
      { name: "people.csv", mimeType: "text/csv", buffer: Buffer.from("name,age\nann,7\n") },
    ]);
    await expect(page.getByText(/broken\.csv is a PDF/)).toBeVisible();
    await page.getByRole("button", { name: /people/ }).click();
    await page.getByLabel("Create this table from people.csv").uncheck();
    await page.getByLabel("URL name").fill("only-orders");
    await page.getByRole("button", { name: "Create pipeline" }).click();
    await expect(page).toHaveURL(/\/p\/only-orders\/data\/orders/, { timeout: 60_000 });
    const { tables } = await api.get<{ tables: { name: string }[] }>("/api/p/only-orders/tables");
    expect(tables.map(({ name }) => name)).toEqual(["orders"]);
  });

  test("counts the rejected rows of each file before anything is created", async ({ page }) => {
    const good = Array.from({ length: 60 }, (_, at) => `${at},${at * 2}`).join("\n");
    await page.goto("/new");
    await page.getByLabel("CSV files").setInputFiles([
      { name: "a.csv", mimeType: "text/csv", buffer: Buffer.from(`id,n\n${good}\n`) },
      { name: "b.csv", mimeType: "text/csv", buffer: Buffer.from(`id,n\n${good}\nx,7\n`) },
    ]);
    await ready(page);
    await expect(page.getByText("1 of 121 rows would be rejected")).toBeVisible({ timeout: 30_000 });
    await expect(page.getByRole("region", { name: "Rejected rows" })).toContainText("b.csv");
    await page.getByLabel("Rejected rows allowed").selectOption({ label: "None (fail the run)" });
    await expect(page.getByText(/1 row of 121 would be rejected, more than allowed/)).toBeVisible();
    await expect(page.getByRole("button", { name: "Create pipeline" })).toBeDisabled();
  });

  test("reports a taken slug at its field, and loses nothing", async ({ page, api, watch }) => {
    watch.expected.push(/409/);
    await page.goto("/new");
    await choose(page, "taken.csv", "a,b\n1,2\n");
    await ready(page);
    await page.getByLabel("URL name").fill("taken-slug");
    await page.getByLabel("Name of a", { exact: true }).fill("renamed");
    await api.post("/api/pipelines", { slug: "taken-slug", template: "blank" });
    await page.getByRole("button", { name: "Create pipeline" }).click();
    await expect(page.getByText("A pipeline named taken-slug already exists. Choose another URL name.")).toBeVisible();
    await expect(page.getByLabel("Name of a", { exact: true })).toHaveValue("renamed");
  });

  test("applies a delimiter chosen by hand, and leaves nothing when it is cancelled", async ({ page, api }) => {
    const before = await samples(api);
    await page.goto("/new");
    await choose(page, "cut.csv", "a,b;c\n1,2;3\n4,5;6\n");
    await ready(page);
    await page.getByText("Detected format").click();
    await page.getByLabel("Delimiter").selectOption('";"');
    await expect(page.getByLabel("Name of a,b")).toBeVisible();
    await page.getByRole("button", { name: "Cancel" }).click();
    await expect(page.getByRole("heading", { name: "Drop CSVs here", exact: true })).toBeVisible();
    await expect.poll(() => samples(api)).toEqual(before);
  });

  test("explains why a file is not a CSV, and offers to choose another", async ({ page }) => {
    await page.goto("/new");
    for (const [name, text] of [
      ["empty.csv", ""],
      ["blank.csv", "\ufeff\r\n  \n\n"],
    ] as const) {
      await choose(page, name, text);
      await expect(page.getByText(`${name} couldn't be read`)).toBeVisible();
      await expect(page.getByText(/^the file has no rows; choose a file/)).toBeVisible();
      if (name === "empty.csv") await page.getByRole("button", { name: "Choose another file" }).click();
    }
    await page.getByRole("button", { name: "Choose another file" }).click();
    await expect(page.getByRole("heading", { name: "Drop CSVs here", exact: true })).toBeVisible();
  });

  test("can start from a file in the lake", async ({ page, api }) => {
    await api.upload("incoming/stock.csv", "item,count\nscrew,5\nnut,7\n");
    await page.goto("/new?key=incoming/stock.csv");
    await page.getByLabel("URL name").fill("stock-lake");
    await page.getByRole("button", { name: "Create pipeline" }).click();
    await expect(page).toHaveURL(/\/p\/stock-lake\/data\/stock/, { timeout: 60_000 });
    const { tables } = await api.get<{ tables: { rows: number }[] }>("/api/p/stock-lake/tables");
    expect(tables[0]?.rows).toBe(2);
  });

  test("shows hostile headers and cells as text", async ({ page }) => {
    await page.addInitScript(() =>
      Object.assign(window, { hits: [], hit: (n: number) => (window as unknown as { hits: number[] }).hits.push(n) }),
    );
    const cell = (text: string) =>
      `"${text
        .replaceAll('"', '""')
        .replace(/[\n\r\0]/g, " ")
        .slice(0, 110)}"`;
    const texts = PAYLOADS.slice(0, 20).map(cell);
    const header = texts.map((text, at) => `"${at} ${text.slice(1)}`);
    await page.goto("/new");
    await choose(
      page,
      "<img src=x onerror=hit(1)>.csv",
      [header, texts, texts].map((line) => line.join(",")).join("\n"),
    );
    await ready(page);
    await expect(page.getByRole("grid", { name: /first rows/ })).toBeVisible();
    expect(await page.evaluate(() => (window as unknown as { hits: number[] }).hits)).toEqual([]);
  });
});

import { describe, expect, it } from "vitest";
import { readHead } from "../../uploads/file-head";
import { seriesOf } from "../../uploads/source-names";
import { commonStem, groupsOf } from "./groups";

const file = (name: string, text: string) => new File([text], name);

describe("several files", () => {
  it("with two headers become two groups", async () => {
    const groups = await groupsOf([
      file("orders-1.csv", "id,total\n1,2\n"),
      file("customers.csv", "id,name\n1,A\n"),
      file("orders-2.csv", '"ID", Total\n3,4\n'),
    ]);
    expect(groups.map(({ files }) => files.map(({ name }) => name))).toEqual([
      ["orders-1.csv", "orders-2.csv"],
      ["customers.csv"],
    ]);
  });
  it("without headers are grouped by number of columns", () => {
    expect(readHead(["1,a,2024-01-01"])).toEqual(readHead(["2,b,2024-02-01"]));
    expect(readHead(["1,a"])).not.toEqual(readHead(["1,a,b"]));
  });
  it("with one header in other formats become one group", async () => {
    const latin = new File([Uint8Array.from("id;größe\n1;2\n", (letter) => letter.charCodeAt(0))], "north.csv");
    const title = "Report of May\nTill 4\n\n";
    const groups = await groupsOf([
      file("east.csv", "id,größe\n1,2\n"),
      file("south.csv", "id;größe\n1;2\n"),
      file("west.csv", `${title}id;größe\n1;2\n3;4\n`),
      latin,
      file("other.csv", "\ufeffid,größe\n1,2\n"),
    ]);
    expect(groups.map(({ files }) => files.map(({ name }) => name))).toEqual([
      ["east.csv", "south.csv", "west.csv", "north.csv", "other.csv"],
    ]);
    const formats = groups.flatMap((group) => group.files.map((one) => group.formats.get(one)));
    expect(new Set(formats).size).toBe(4);
    expect(formats[0]).toBe(formats[4]);
  });
  it("is one whose columns are in another order", async () => {
    const groups = await groupsOf([file("a.csv", "id,date,sum\n1,2,3\n"), file("b.csv", "date;sum;id\n1;2;3\n")]);
    expect(groups.map((group) => group.files.map(({ name }) => name))).toEqual([["a.csv", "b.csv"]]);
  });
  it("without headers and with other delimiters become two groups", async () => {
    const groups = await groupsOf([file("a.csv", "1,2\n3,4\n"), file("b.csv", "1;2\n3;4\n")]);
    expect(groups).toHaveLength(2);
  });
  it("have the delimiter that separates most names", () => {
    expect(readHead(['"a;b;c;d",e']).delimiter).toBe(",");
    expect(readHead(["Order ID|Amount, USD|Day"]).header).toEqual(["order id", "amount, usd", "day"]);
    expect(readHead(["id"]).width).toBe(1);
  });
  it("name the table by their common prefix", () => {
    const named = (...names: string[]) => commonStem(names.map((name) => ({ name })));
    expect(named("rentals north 2026-01.csv", "South_rentals_01.txt", "west-202601.csv", "rentals-east.csv")).toBe(
      "rentals",
    );
    expect(named("sales_q1.csv", "sales_q2.csv")).toBe("sales");
    expect(named("orders-2024-01.csv", "orders-2024-02.csv.gz")).toBe("orders");
    expect(named("a.csv", "b.csv")).toBe("a");
    expect(named("sales_jan.csv", "Umsatz_März.csv", "sales-feb.csv", "sales apr.csv")).toBe("sales");
    expect(named("people-1.csv")).toBe("people-1");
  });
});

it("takes a file of the series with a new column for the same table, and another series for another", async () => {
  const names = async (...files: [string, string][]) =>
    (await groupsOf(files.map(([name, text]) => new File([text], name)))).map((group) =>
      group.files.map(({ name }) => name),
    );
  expect(
    await names(
      ["sales_q1.csv", "id,day,price\n1"],
      ["sales_q2.csv", "id,day,price,channel\n1"],
      ["stock.csv", "id,day,count\n1"],
    ),
  ).toEqual([["sales_q1.csv", "sales_q2.csv"], ["stock.csv"]]);
  expect(await names(["sales_q1.csv", "id,day,price\n1"], ["sales_q2.csv", "item,count,day\n1"])).toHaveLength(2);
});

it.each([
  ["sales_q1.csv", "sales"],
  ["sales-2024-03.csv.gz", "sales"],
  ["Sales Jan.csv", "sales"],
  ["2024.csv", ""],
  ["orders_part_2.csv", "orders"],
])("knows the series of %s", (name, series) => {
  expect(seriesOf(name)).toBe(series);
});

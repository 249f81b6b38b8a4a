import { describe, expect, it } from "vitest";
import { DEFAULT_SHAPE, partsOf, shapeOf, sizeProblem } from "./parts";

const texts = async (file: File, most: number, csv: object = {}, packed = true) => {
  const parts = await partsOf(file, shapeOf(csv), packed, most, most);
  return await Promise.all(parts.map(async ({ name, body }) => [name, await body.text()] as const));
};

describe("a file above the upload limit", () => {
  const rows = Array.from({ length: 100 }, (_, at) => `${at},name ${at}\n`);

  it("is split into parts below the limit, each with the header, without losing or repeating a row", async () => {
    const parts = await texts(new File([`id,name\n${rows.join("")}`], "big.csv"), 300);
    expect(parts.length).toBeGreaterThan(3);
    expect(parts[0]?.[0]).toBe("big-part-001.csv.gz");
    for (const [, text] of parts) expect([text.startsWith("id,name\n"), text.length <= 300]).toEqual([true, true]);
    expect(parts.map(([, text]) => text.slice("id,name\n".length)).join("")).toBe(rows.join(""));
  });

  it("is split only between records, whatever is quoted", async () => {
    const quoted = Array.from({ length: 30 }, (_, at) => `${at},"line\nbreak ""${at}"""\n`);
    const parts = await texts(new File([`id,"na\nme"\n${quoted.join("")}`], "q.csv"), 120);
    for (const [, text] of parts) expect(text).toMatch(/^id,"na\nme"\n\d+,"line/);
    expect(parts.map(([, text]) => text.slice('id,"na\nme"\n'.length)).join("")).toBe(quoted.join(""));
  });

  it("keeps the lines before the header, and needs no header", async () => {
    const [, second] = await texts(new File([`Report "x\n\nid,name\n${rows.join("")}`], "r.csv"), 400, {
      skip_rows: 2,
    });
    expect(second?.[1]).toMatch(/^Report "x\n\nid,name\n\d+,name/);
    const [, plain] = await texts(new File(rows, "n.csv"), 400, { header: false });
    expect(plain?.[1]).toMatch(/^\d+,name/);
  });

  it("in UTF-16 is split at line breaks, with a byte order mark in every part", async () => {
    const text = `\ufeffid,näme\n${rows.join("")}`;
    const units = new Uint16Array([...text].map((sign) => sign.charCodeAt(0)));
    const file = new File([units], "w.csv");
    const parts = await partsOf(file, DEFAULT_SHAPE, true, 900, 900);
    const decoded = await Promise.all(
      parts.map(async ({ body }) => new TextDecoder("utf-16le").decode(await body.arrayBuffer())),
    );
    expect(decoded.length).toBeGreaterThan(2);
    expect(decoded.map((one) => one.slice("id,näme\n".length)).join("")).toBe(rows.join(""));
  });

  it("isn't split below the limit; if it is already compressed, it is refused with advice", async () => {
    const small = new File(["a\n"], "s.csv");
    expect(await partsOf(small, DEFAULT_SHAPE, true)).toEqual([{ name: "s.csv", body: small, pack: false }]);
    expect(sizeProblem("x.csv.gz", 200 << 20)).toContain("Add the uncompressed file");
    expect(sizeProblem("x.csv", 200 << 20)).toBeUndefined();
  });

  it("with footer lines is compressed as a whole", async () => {
    expect((await texts(new File(rows, "f.csv"), 300, { skip_footer_rows: 1 }))[0]?.[0]).toBe("f.csv.gz");
    await expect(texts(new File(rows, "f.csv"), 300, { skip_footer_rows: 1 }, false)).rejects.toThrow("gzip");
  });
});

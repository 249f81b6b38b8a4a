import { afterEach, expect, it, vi } from "vitest";
import { sampled, stagePiece } from "./staging";
import * as once from "./upload-once";

afterEach(() => vi.restoreAllMocks());

const lines = Array.from({ length: 150_000 }, (_, at) => `${at},name ${at}\n`);
const header = "id,name\n";

it.each([["utf-8"], ["utf-16"]])(
  "pieces of a %s file are whole rows that its sample doesn't have",
  async (encoding) => {
    const encode = (text: string) => {
      if (encoding === "utf-8") return new TextEncoder().encode(text);
      const units = Uint16Array.from(text, (c) => c.charCodeAt(0));
      return new Uint8Array(units.buffer);
    };
    const bom = encoding === "utf-8" ? new Uint8Array() : Uint8Array.of(0xff, 0xfe);
    const sample = [bom, encode(header + lines.slice(0, 50_000).join(""))];
    const file = new File([...sample, encode(lines.slice(50_000).join(""))], "big.csv");
    const bytes = sample.reduce((sum, { length }) => sum + length, 0);
    const staged = {
      slug: "draft-0",
      key: "pipelines/draft-0/.0/big.txt",
      name: "big.csv",
      whole: false,
      bytes,
      ours: true,
    };
    const sent: string[] = [];
    vi.spyOn(once, "uploadOnce").mockImplementation(async (_, body) => {
      sent.push(new TextDecoder(encoding === "utf-8" ? "utf-8" : "utf-16le").decode(await body.arrayBuffer()));
    });
    for (const piece of ["middle", "end"] as const) {
      expect(await stagePiece(file, staged, piece, {})).toMatchObject({
        piece,
        key: `pipelines/draft-0/.0-${piece}/big.txt`,
      });
      const text = sent.pop() ?? "";
      expect(text.startsWith(header)).toBe(true);
      const rows = text.slice(header.length).split(/(?<=\n)/);
      const first = Number(rows[0]?.split(",")[0]);
      expect(first).toBeGreaterThanOrEqual(50_000);
      expect(rows).toEqual(lines.slice(first, first + rows.length));
      if (piece === "end") expect(rows.at(-1)).toBe(lines.at(-1));
    }
  },
);

it.each([
  ["small", 1, 16],
  ["large", 20 << 20, 6],
])("samples of many %s files have one of each format", (_, size, most) => {
  const sized = (name: string) => Object.defineProperty(new File([], name), "size", { value: size });
  const files = Array.from({ length: 30 }, (_, at) => sized(`${at}.csv`));
  const formats = new Map(files.map((file, at) => [file, at === 7 || at === 8 ? ";" : at === 25 ? "|" : ","]));
  const names = sampled(files, formats).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["0.csv", "7.csv", "25.csv", "29.csv"]));
  expect(names).not.toContain("8.csv");
  expect(names).toHaveLength(most);
});

it("samples of few files have all of them, unless they are large", () => {
  const sized = (size: number) => (_: unknown, at: number) =>
    Object.defineProperty(new File([], `${at}.csv`), "size", { value: size });
  for (const many of [1, 2, 3, 5, 16]) expect(sampled(Array.from({ length: many }, sized(1000)))).toHaveLength(many);
  expect(sampled(Array.from({ length: 16 }, sized(20 << 20)))).toHaveLength(4);
});

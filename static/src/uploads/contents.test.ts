import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { contentProblem } from "./contents";

const file = (name: string, ...parts: BlobPart[]) => new File(parts, name);
const binary = (text: string) => Uint8Array.from(text, (sign) => sign.charCodeAt(0));
const utf16 = (text: string, mark: boolean) => {
  const units = Uint16Array.from((mark ? "\ufeff" : "") + text, (sign) => sign.charCodeAt(0));
  return new Uint8Array(units.buffer);
};
const gzipped = (text: string) => new Uint8Array(gzipSync(text));

describe("files that aren't delimited text are named for what they are", () => {
  it.each<[string, File, string, string]>([
    ["PDF", file("report.csv", "%PDF-1.7\n%âãÏÓ\n1 0 obj"), "is a PDF", "Export the data as CSV"],
    ["XLSX", file("a.csv", binary(`PK\x03\x04${"\0".repeat(26)}[Content_Types].xml`)), "Excel", "CSV UTF-8"],
    ["ZIP", file("a.csv", binary(`PK\x03\x04${"\0".repeat(26)}a.csv`)), "a ZIP archive", "ends in .zip"],
    ["XLS", file("a.csv", binary("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")), ".xls", "CSV UTF-8"],
    ["gzip", file("a.csv", gzipped("a,b\n1,2\n")), "compressed with gzip", "ends in .gz"],
    ["PNG", file("a.csv", binary("\x89PNG\r\n\x1a\n\0\0")), "an image", "Export"],
    ["JPEG", file("a", binary("\xff\xd8\xff\xe0")), "an image", "Export"],
    [
      "HTML",
      file("a.csv", "\ufeff\n<!DOCTYPE html>\n<html><body>404</body></html>"),
      "a web page",
      "download the CSV again",
    ],
    ["UTF-16 HTML", file("a.csv", utf16("<html><head></head></html>", true)), "a web page", "again"],
    ["JSON", file("a.csv", '{"error": {"code": 404}}'), "a JSON document", "Export"],
    ["XML", file("a.csv", '<?xml version="1.0"?><rows/>'), "an XML document", "Export"],
    ["NULs", file("a.csv", binary("a,b\n1,\0\0\0\0\x01\x02")), "not text", "Export"],
    ["PDF in gzip", file("a.csv.gz", gzipped("%PDF-1.7\n")), "has, compressed, a PDF", "Export"],
    ["plain as gzip", file("a.csv.gz", "a,b\n1,2\n"), "not compressed", "Remove .gz"],
    ["Parquet", file("a.csv", "PAR1\x15\x04"), "a Parquet file", "Export"],
  ])("%s", async (_, given, is, todo) => {
    const problem = await contentProblem(given);
    expect(problem).toContain(given.name);
    expect(problem).toContain(is);
    expect(problem).toContain(todo);
  });
});

describe("delimited text is taken", () => {
  it.each<[string, File]>([
    ["UTF-8", file("a.csv", "\ufeffname;größe\nä;1\n")],
    ["Windows-1252", file("a.csv", binary("name;gr\xf6\xdfe\n\xe4;1\n"))],
    ["UTF-16 with a mark", file("a.csv", utf16("name\tvalue\r\nä\t1\r\n", true))],
    ["UTF-16 without one", file("a.csv", utf16("name\tvalue\r\nä\t1\r\n", false))],
    ["gzip", file("a.csv.gz", gzipped("a,b\n1,2\n"))],
    ["zstd", file("a.csv.zst", binary("\x28\xb5\x2f\xfd\xa0"))],
    ["nothing", file("a.csv")],
    ["tags in cells", file("a.csv", "id,html\n1,<html>\n")],
    ["documents in cells", file("a.csv", '{id},{"b"}\n1,"{""a"": 1}"\n')],
    ["names that begin like signatures", file("a.csv", "BM,PK,GIF\n1,2,3\n")],
  ])("%s", async (_, given) => expect(await contentProblem(given)).toBeUndefined());
});

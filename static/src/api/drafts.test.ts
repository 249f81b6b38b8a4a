import { expect, it } from "vitest";
import { newDraft, ofFiles } from "./drafts";
import { ApiFailure } from "./failure";

const draft = `pipelines/${newDraft()}`;
const samples = [
  { key: `${draft}/.0/Q1 Bericht.csv`, name: "Q1 Bericht.csv" },
  { key: `${draft}/.1-middle/Q2.csv`, name: "Q2.csv.gz" },
];
const said = (message: string) => ofFiles(new ApiFailure(400, "invalid_request", message), samples, "a.pdf").message;

it("a failure about a sample names its file, and no temporary key", () => {
  expect(said(`not a CSV: \`${draft}/.1-middle/Q2.csv\`: it is a PDF file`)).toBe(
    "not a CSV: `Q2.csv.gz`: it is a PDF file",
  );
  expect(said("`.0/Q1 Bericht.csv` does not fit table `x`: it has no column `a.b`")).toBe(
    "`Q1 Bericht.csv` does not fit table `x`: it has no column `a.b`",
  );
  expect(said(`not a CSV: \`${draft}/.7/other.txt\`: it is a PDF file`)).toBe("not a CSV: `a.pdf`: it is a PDF file");
  expect(said("`.1-middle/Q2.csv` has `.5`, not a number")).toBe("`Q2.csv.gz` has `.5`, not a number");
});

import { expect, it } from "vitest";
import { newDraft, ofFile } from "./drafts";
import { ApiFailure } from "./failure";

it("a failure about a sample names the file, and no temporary key", () => {
  const said = (message: string) => ofFile(new ApiFailure(400, "invalid_request", message), "Q1 Bericht.pdf").message;
  expect(said(`not a CSV: \`pipelines/${newDraft()}/.Q1 Bericht.txt\`: it is a PDF file`)).toBe(
    "not a CSV: `Q1 Bericht.pdf`: it is a PDF file",
  );
  expect(said("`.Q1 Bericht.txt` does not fit table `x`: it has no column `a.b`")).toBe(
    "`Q1 Bericht.pdf` does not fit table `x`: it has no column `a.b`",
  );
});

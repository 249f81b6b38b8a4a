/** Splits delimited text for a preview; the service decides how a run reads it. */
export function split(text: string, delimiter: string, quote: string | null): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let quoted = false;
  let at = 0;
  const endRow = () => {
    row.push(cell);
    rows.push(row);
    row = [];
    cell = "";
  };
  while (at < text.length) {
    const c = text.charAt(at);
    if (quoted) {
      if (c !== quote) cell += c;
      else if (text.charAt(at + 1) === quote) {
        cell += c;
        at += 1;
      } else quoted = false;
    } else if (c === quote && cell === "") quoted = true;
    else if (delimiter !== "" && text.startsWith(delimiter, at)) {
      row.push(cell);
      cell = "";
      at += delimiter.length - 1;
    } else if (c === "\n") endRow();
    else if (c !== "\r" || text.charAt(at + 1) !== "\n") cell += c;
    at += 1;
  }
  if (cell !== "" || row.length > 0) endRow();
  return rows;
}

const DELIMITERS = [",", ";", "\t", "|"];
const SAMPLED_LINES = 50;

/** The delimiter that splits the first rows into equally many cells, more than one. */
export function sniff(text: string): string {
  const head = text.split("\n", SAMPLED_LINES).join("\n");
  let best = { delimiter: ",", score: 0 };
  for (const delimiter of DELIMITERS) {
    const widths = split(head, delimiter, '"').map((row) => row.length);
    const width = widths[0] ?? 1;
    const agree = widths.filter((one) => one === width).length / Math.max(1, widths.length);
    const score = width > 1 ? agree * 10 + Math.min(width, 9) / 10 : 0;
    if (score > best.score) best = { delimiter, score };
  }
  return best.delimiter;
}

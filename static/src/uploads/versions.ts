/**
 * Recognises which stored files a new file may be a corrected version of: by their names, else by their first lines.
 *
 * Must not: decide anything; people choose.
 */
import { formsOf, stemOf } from "./source-names";

/** Words that tell a version of a file from the others. */
const VERSION_WORD =
  /^(v\d+|ver\d*|version|rev\d*|revision|revised|revidiert|corr|corrected|correction|corrections|korr|korrigiert|korrektur|korrigierte?|corrige|corregido|fixed|fix|final|finale?|new|neu|neue|updated?|update|aktualisiert|aktuell|edited|bearbeitet|cleaned|bereinigt|copy|kopie|copie|copia|of|von)$/;

const MONTHS_OF = ["en", "de", "fr", "es"];
/** Numbers of months by their names, long and in three letters. */
const MONTHS: ReadonlyMap<string, string> = new Map(
  MONTHS_OF.flatMap((locale) => {
    const month = new Intl.DateTimeFormat(locale, { month: "long", timeZone: "UTC" });
    return Array.from({ length: 12 }, (_, at): [string, string][] => {
      const [name, number] = [plain(month.format(Date.UTC(2024, at, 1))), String(at + 1).padStart(2, "0")];
      return [
        [name, number],
        [name.slice(0, 3), number],
      ];
    }).flat();
  }),
);

function plain(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}

interface Named {
  /** `2024-03`, `2024-03-31`; undefined without a year and month. */
  period: string | undefined;
  words: string[];
}

/** A name's period, and its other words without those of versions. */
function partsOf(name: string): Named {
  const stem = plain(stemOf(name))
    .replace(/-part-\d{3,}$/, "")
    // `2024-03 (1)`: what browsers and file managers append.
    .replace(/[\s_-]*\(\d{1,2}\)$/, "");
  let words = stem.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "" && !VERSION_WORD.test(word));
  const month = words.find((word) => MONTHS.has(word));
  const year = words.find((word) => /^(19|20)\d\d$/.test(word));
  if (month !== undefined && year !== undefined) {
    words = words.filter((word) => word !== month && word !== year);
    return { period: `${year}-${MONTHS.get(month) ?? ""}`, words };
  }
  const dated = /(?<!\d)((?:19|20)\d\d)[-_. ]?(0[1-9]|1[0-2])(?:[-_. ]?(0[1-9]|[12]\d|3[01]))?(?!\d)/.exec(stem);
  if (!dated) return { period: undefined, words };
  const left = `${stem.slice(0, dated.index)} ${stem.slice(dated.index + dated[0].length)}`;
  return {
    period: dated.slice(1, 4).filter(Boolean).join("-"),
    words: left.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "" && !VERSION_WORD.test(word)),
  };
}

const within = (some: readonly string[], all: readonly string[]): boolean => some.every((word) => all.includes(word));

/** Whether a name looks like another version of the other: it differs in words of versions, or shares its period. */
export function isVersionName(name: string, other: string): boolean {
  if (name === other || formsOf(name).test(other)) return false;
  const [one, two] = [partsOf(name), partsOf(other)];
  if (one.period !== two.period) return false;
  if (one.period === undefined) return one.words.length > 0 && one.words.join(" ") === two.words.join(" ");
  return within(one.words, two.words) || within(two.words, one.words);
}

/** Files that names are compared with one another up to. */
const COMPARED_MAX = 300;

/** Files whose names look like other versions of others among them, each with the other. */
export function versionsAmong(names: readonly string[]): [string, string][] {
  const some = names.slice(0, COMPARED_MAX);
  return some.flatMap((name): [string, string][] => {
    const other = some.find((one) => one.length < name.length && isVersionName(name, one));
    return other === undefined ? [] : [[name, other]];
  });
}

/** Whether both names have periods, and different ones. */
export const differInPeriod = (name: string, other: string): boolean => {
  const [one, two] = [partsOf(name).period, partsOf(other).period];
  return one !== undefined && two !== undefined && one !== two;
};

/** Share of equal lines from which on two files have the same rows. */
const SAME_SHARE_MIN = 0.5;
const LINES_MIN = 5;
const DATE = /(?<!\d)(?:((?:19|20)\d\d)-(\d\d)-\d\d|\d{1,2}\.(\d\d)\.((?:19|20)\d\d))(?!\d)/;

/** Header and whole rows of a text that may end within a row. */
function linesOf(text: string): { header: string; rows: string[] } {
  const [header = "", ...rows] = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  return { header, rows: text.endsWith("\n") ? rows : rows.slice(0, -1) };
}

/** The months of the rows' first dates: `2024-03`, or several. */
function monthsOf(rows: readonly string[]): string {
  const found = rows.map((row) => {
    const [, year, month, monthBefore, yearAfter] = DATE.exec(row) ?? [];
    return year ? `${year}-${month ?? ""}` : yearAfter ? `${yearAfter}-${monthBefore ?? ""}` : "";
  });
  return [...new Set(found.filter(Boolean))].sort().join(" ");
}

/**
 * The one of several texts that has the header of `text` and most of its rows, or alone its period; undefined if none has.
 * The texts are the first bytes of files.
 */
export function sameRows<T extends { text: string }>(text: string, others: readonly T[]): T | undefined {
  const own = linesOf(text);
  if (own.rows.length < LINES_MIN) return undefined;
  const known = new Set(own.rows);
  const alike = others
    .map((other) => ({ other, lines: linesOf(other.text) }))
    .filter(({ lines: { header, rows } }) => header === own.header && rows.length > 0);
  const share = ({ rows }: { rows: string[] }) =>
    rows.filter((row) => known.has(row)).length / Math.min(rows.length, own.rows.length);
  const [best] = alike.map((one) => ({ ...one, same: share(one.lines) })).sort((a, b) => b.same - a.same);
  if (best && best.same >= SAME_SHARE_MIN) return best.other;
  const period = monthsOf(own.rows);
  const [first, ...more] = period === "" ? [] : alike.filter(({ lines: { rows } }) => monthsOf(rows) === period);
  // Where files share periods, a period says nothing.
  return more.length === 0 && alike.length > 1 ? first?.other : undefined;
}

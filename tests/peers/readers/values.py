"""The values that readers are compared on, as a lake with its config, a table for each kind of value: values.py FOLDER

Shares no code with Lakemill or with a reader. `value` of a cell is what a reader must give for it, in one form:
integers for integers, days of dates, microseconds of times and timestamps; floats, decimals, booleans, texts; 32 hex
digits for a UUID.
"""

import datetime as dt
import decimal
import json
import math
import pathlib
import struct
import sys

ROWS = 18_432
# Three row groups: few values with nulls, nulls alone, few values again. More rows than the batches of any reader.
GROUP_ROWS = 8_192
EPOCH = dt.datetime(1970, 1, 1)
MICRO = dt.timedelta(microseconds=1)


class Cell:
    """A cell of the CSV, and its value. `text` None is an empty cell, which is null."""

    __slots__ = ("text", "value")

    def __init__(self, text, value):
        self.text, self.value = text, value


NULL = Cell(None, None)


class Kind:
    """A row of the readers' table: a type, or a range of its values. `few` and `many` hold Cells."""

    def __init__(self, label, declared, few, many, **parquet):
        self.label, self.declared, self.few, self.many, self.parquet = label, declared, few, many, parquet
        self.base = declared.partition("(")[0]
        self.source = self.table = "t_" + "".join(c if c.isalnum() else "_" for c in label.lower())

    def written(self, option, choice):
        """The same values with an option of `parquet`."""
        kind = Kind(f"{self.label}, `{option}: {choice}`", self.declared, self.few, self.many, **{option: choice})
        kind.source = self.source
        return kind

    def cell(self, column, row):
        if column == "v":
            group = row // GROUP_ROWS
            return NULL if group == 1 else (self.few + [NULL])[row % (len(self.few) + 1)]
        return NULL if row % 11 == 5 else self.many(row)

    def column(self, name):
        return [self.cell(name, row).value for row in range(ROWS)]


def integers(bits, signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    few = [Cell(str(n), n) for n in sorted({low, low + 1, -1 if signed else 1, 0, 1, 42, high // 2, high - 1, high})]

    def many(row):
        n = low + row * 2_654_435_761 * 40_503 % (high - low + 1)
        return Cell(str(n), n)

    return Kind(f"{'' if signed else 'u'}int{bits}", f"{'' if signed else 'u'}int{bits}", few, many)


def single(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def floats(bits):
    if bits == 32:
        largest, least = struct.unpack("<ff", bytes.fromhex("ffff7f7f01000000"))
    else:
        largest, least = struct.unpack("<dd", bytes.fromhex("ffffffffffffef7f0100000000000000"))
    cut = single if bits == 32 else float
    numbers = [0.0, -0.0, 1.5, -1.5, 0.1, 5.0, largest, -largest, least, math.nan, math.inf, -math.inf]
    text = {math.inf: "inf", -math.inf: "-inf"}
    few = [Cell("nan" if math.isnan(n) else text.get(n, repr(n)), n if math.isnan(n) else cut(n)) for n in numbers]

    def many(row):
        if row % 97 == 3:
            return Cell("nan", math.nan)
        n = cut((row - 9_000) * 1.1)
        return Cell(repr(n), n)

    return Kind(f"float{bits}", f"float{bits}", few, many)


def decimals(precision, scale):
    context = decimal.Context(prec=60)
    largest = decimal.Decimal(10**precision - 1).scaleb(-scale, context)
    unit = decimal.Decimal(1).scaleb(-scale, context)

    def cell(number):
        return Cell(f"{number:f}", number)

    few = [cell(n) for n in (largest, largest.copy_negate(), unit, unit.copy_negate(), decimal.Decimal(0),
                             decimal.Decimal("1.5"), decimal.Decimal("-2.25"))]

    def many(row):
        number = decimal.Decimal((row * 10**precision // ROWS) * (-1) ** row + row).scaleb(-scale, context)
        return cell(number)

    return Kind(f"decimal({precision},{scale})", f"decimal({precision},{scale})", few, many)


TEXTS = ["", " ", "a", "A", "ä", "a\u0308", "東京", "🦆", "\U0010ffff", "\uffff", "line\nbreak", "tab\t", 'quote"', "null", "NaN",
         "0012", "1e5", "x" * 70, "\u7f00" * 40, "trailing ", "\x01", "\\", "%20", "__HIVE_DEFAULT_PARTITION__"]


def strings():
    return Kind("string", "string", [Cell(t, t) for t in TEXTS],
                lambda row: (lambda t: Cell(t, t))(f"{TEXTS[row % len(TEXTS)]}{row * 7_919 % 65_537:x}{'é' * (row % 9)}"))


def dates(label, first, last):
    first, last = dt.date.fromisoformat(first), dt.date.fromisoformat(last)
    days = (last - first).days

    def cell(day):
        return Cell(day.isoformat(), (day - EPOCH.date()).days)

    few = [cell(day) for day in (first, first + dt.timedelta(1), first + dt.timedelta(days // 2), last - dt.timedelta(1), last)]
    return Kind(label, "date", few, lambda row: cell(first + dt.timedelta(row * 7_919 % (days + 1))))


def times():
    def cell(micros):
        return Cell((EPOCH + micros * MICRO).time().isoformat("microseconds"), micros)

    last = 86_400_000_000 - 1
    few = [cell(n) for n in (0, 1, 999_999, 43_200_000_000, last - 1, last)]
    return Kind("time", "time", few, lambda row: cell(row * 4_689_023_117 % (last + 1)))


def timestamps(label, declared, first, last):
    first, last = ((dt.datetime.fromisoformat(t) - EPOCH) // MICRO for t in (first, last))

    def cell(micros):
        return Cell((EPOCH + micros * MICRO).isoformat(" ", "microseconds") + ("Z" if declared == "timestamptz" else ""), micros)

    few = [cell(n) for n in (first, first + 1, (first + last) // 2, last - 1, last)]
    # Hours that occur twice in New York, and that are skipped.
    if label == declared:
        marked = ["1970-01-01", "1969-12-31 23:59:59.999999", "2024-11-03 01:30:00", "2024-03-10 02:30:00"]
        few += [cell((dt.datetime.fromisoformat(t) - EPOCH) // MICRO) for t in marked]
    step = (last - first) // ROWS
    return Kind(label, declared, few, lambda row: cell(first + (row * 7_919 % ROWS) * step + row))


def uuids():
    def cell(n):
        digits = f"{n:032x}"
        return Cell("-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])), digits)

    few = [cell(n) for n in (0, 1, 2**127 - 1, 2**127, 2**128 - 1, 0x0123456789ABCDEF0123456789ABCDEF)]
    return Kind("uuid", "uuid", few, lambda row: cell(row * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128))


def documents():
    texts = ["{}", "[]", "null", "true", "-0.0", '""', '"ä🦆"', '{"a": [1, 2, {"b": null}]}', '{"a":1,"a":2}', "1e400",
             "12345678901234567890123", '"\\u0000"', '[ 1 ,2 ]']
    return Kind("json", "json", [Cell(t, t) for t in texts],
                lambda row: (lambda t: Cell(t, t))(json.dumps({"n": row * 7_919 % 65_537, "t": TEXTS[row % len(TEXTS)]})))


def booleans():
    cells = [Cell("true", True), Cell("false", False)]
    return Kind("boolean", "boolean", cells, lambda row: cells[(row * row) % 7 % 2])


OLD, OLD_TIMES, NEW = "years 1 to 1581", "years 1 to 1899", "years 2263 to 9999"
KINDS = [
    booleans(),
    *(integers(bits, signed) for signed in (True, False) for bits in (8, 16, 32, 64)),
    floats(32), floats(64),
    decimals(9, 2), decimals(18, 4), decimals(38, 10),
    strings(),
    dates("date", "1900-01-01", "2262-04-11"),
    dates(f"date, {OLD}", "0001-01-01", "1581-12-31"),
    dates(f"date, {NEW}", "2263-01-01", "9999-12-31"),
    times(),
    *(kind for declared in ("timestamp", "timestamptz") for kind in (
        timestamps(declared, declared, "1900-01-02", "2262-04-11 00:00:00"),
        timestamps(f"{declared}, {OLD_TIMES}", declared, "0001-01-02", "1899-12-31 23:59:59.999999"),
        timestamps(f"{declared}, {NEW}", declared, "2263-01-01", "9999-12-30 23:59:59.999999"))),
    uuids(),
    documents(),
]


KINDS += [kind.written("encodings", "compact") for kind in KINDS if kind.label == kind.declared]
KINDS += [kind.written("compression", name) for kind in KINDS if kind.label == "string" for name in ("snappy", "lz4", "none")]


def quoted(text):
    return "" if text is None else '"' + text.replace('"', '""') + '"'


def make(folder):
    """`lake`, with the CSVs of all kinds, and `pipeline.json`."""
    for kind in KINDS:
        if kind.source == kind.table:
            path = folder / "lake" / kind.table / "a.csv"
            path.parent.mkdir(parents=True)
            lines = ["id,v,w"]
            lines += [f"{row},{quoted(kind.cell('v', row).text)},{quoted(kind.cell('w', row).text)}" for row in range(ROWS)]
            path.write_bytes(("\n".join(lines) + "\n").encode())
    mappings = [
        {"table": kind.table, "files": [f"{kind.source}/*.csv"],
         "columns": [{"name": "id", "type": "int32", "nullable": False},
                     {"name": "v", "type": kind.declared}, {"name": "w", "type": kind.declared}],
         "parquet": {"row_group_rows": GROUP_ROWS} | kind.parquet}
        for kind in KINDS]
    (folder / "pipeline.json").write_text(json.dumps({"version": 1, "mappings": mappings}, indent=1))


def distinct(warehouse):
    """The kinds except those for which an option changed nothing."""
    content = {kind.table: [path.read_bytes() for path in sorted((warehouse / kind.table).iterdir())] for kind in KINDS}
    return [kind for kind in KINDS if kind.table == kind.source or content[kind.table] != content[kind.source]]


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]))

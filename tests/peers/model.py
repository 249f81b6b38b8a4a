"""The expected rows of a pipeline's tables, computed from the CSVs with Python's csv module and none of our code.
Supports the parts of a config that the peers test uses: dialects, encodings, types, aliases, positions, null tokens,
ragged rows, and the few computed columns listed in EXPRESSIONS. Anything else in a config is an error, not a guess.
"""

import csv
import datetime as dt
import decimal
import glob
import gzip
import io
import json
import os
import re
import uuid
import zoneinfo

EXPRESSIONS = {
    "make_date(year, month, day)": lambda row: dt.date(row["year"], row["month"], row["day"]),
    "upper(name)": lambda row: None if row["name"] is None else row["name"].upper(),
    "amount * 2": lambda row: None if row["amount"] is None else row["amount"] * 2,
}
CSV_MEMBERS = {
    "delimiter", "header", "skip_rows", "skip_rows_after_header", "skip_footer_rows", "comment", "encoding", "null_values",
    "quoted_nulls", "trim", "decimal", "thousands", "true_values", "false_values", "ragged_rows", "quotes", "escape",
    "record_terminator",
}
COLUMN_MEMBERS = {"name", "from", "type", "formats", "nullable", "expr", "timezone"}
csv.field_size_limit(1 << 30)


class Bad(Exception):
    """A cell or record that must be rejected."""


def read_text(path, encoding):
    data = open(path, "rb").read()
    if path.endswith(".gz"):
        data = gzip.decompress(data)
    for mark, name in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            return data[len(mark):].decode(name)
    return data.decode(encoding)


def records(path, dialect):
    """(header or None, records) of one file."""
    unknown = set(dialect) - CSV_MEMBERS
    assert not unknown, unknown
    text = read_text(path, dialect.get("encoding", "utf-8"))
    if dialect.get("record_terminator") == "cr":
        text = text.replace("\r", "\n")
    for _ in range(dialect.get("skip_rows", 0)):
        text = text.partition("\n")[2]
    if dialect.get("comment"):
        text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(dialect["comment"]))
    options = {"delimiter": dialect.get("delimiter", ","), "strict": True}
    if dialect.get("escape"):
        options.update(escapechar=dialect["escape"], doublequote=False)
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), **options) if row]
    header = rows.pop(0) if dialect.get("header", True) and rows else None
    rows = rows[dialect.get("skip_rows_after_header", 0):]
    footer = dialect.get("skip_footer_rows", 0)
    return header, rows[:-footer] if footer else rows


def integers(kind):
    bits, signed = int(kind.lstrip("uint")), kind.startswith("i")
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    digits = re.compile(r"[+-]?[0-9]+").fullmatch

    def parse(text):
        if not digits(text) or not low <= int(text) <= high:
            raise Bad(text)
        return int(text)

    return parse


def decimals(kind):
    precision, scale = map(int, re.findall(r"\d+", kind))
    digits = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?").fullmatch

    def parse(text):
        if not digits(text):
            raise Bad(text)
        with decimal.localcontext(prec=100):
            shifted = decimal.Decimal(text).scaleb(scale)
            if shifted != shifted.to_integral_value() or abs(shifted) >= 10**precision:
                raise Bad(text)
            return shifted.to_integral_value().scaleb(-scale)

    return parse


def moments(column, kind):
    formats = [f.replace("%.f", ".%f") for f in column.get("formats", [])]
    zone = zoneinfo.ZoneInfo(column.get("timezone", "UTC"))
    of = dt.date if kind == "date" and not formats else dt.datetime

    def read(text):
        if not formats:
            return of.fromisoformat(text)
        found = set()
        for pattern in formats:
            try:
                found.add(dt.datetime.strptime(text, pattern))
            except ValueError:
                continue
        if len(found) != 1:
            raise Bad(text)
        return found.pop()

    if kind == "timestamptz":
        def parse(text):
            value = read(text)
            return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(dt.timezone.utc)
        return parse
    return (lambda text: read(text).date()) if kind == "date" and formats else read


def booleans(dialect):
    words = dict.fromkeys(dialect.get("true_values", ["true"]), True)
    words |= dict.fromkeys(dialect.get("false_values", ["false"]), False)

    def parse(text):
        if text not in words:
            raise Bad(text)
        return words[text]

    return parse


def parser(column, dialect):
    """Returns a function that parses a cell's text into a value or None, or raises Bad."""
    kind = column["type"]
    nulls = set(dialect.get("null_values", [""]))
    number = re.fullmatch(r"u?int\d+|float64|decimal\(.*\)", kind)
    if kind in ("string", "json"):
        of = str
    elif kind.startswith(("int", "uint")):
        of = integers(kind)
    elif kind.startswith("decimal"):
        of = decimals(kind)
    elif kind in ("date", "timestamp", "timestamptz"):
        of = moments(column, kind)
    elif kind == "boolean":
        of = booleans(dialect)
    else:
        of = {"float64": float, "time": dt.time.fromisoformat, "uuid": uuid.UUID}[kind]
    thousands = dialect.get("thousands") if number else None
    point = dialect.get("decimal", ".") if number else "."
    trim = dialect.get("trim")

    def parse(text):
        if trim:
            text = text.strip(" \t")
        if text in nulls:
            return None
        if thousands:
            text = text.replace(thousands, "")
        if point != ".":
            text = text.replace(point, ".")
        try:
            return of(text)
        except ValueError:
            raise Bad(text) from None

    return parse


def places(header, columns):
    """For each parsed column its position in the records."""
    names = [h.strip().lower() for h in header] if header is not None else None
    out = {}
    for column in columns:
        if "expr" in column:
            continue
        source = column.get("from", column["name"])
        if isinstance(source, int):
            out[column["name"]] = source
            continue
        aliases = source if isinstance(source, list) else [source]
        out[column["name"]] = next(names.index(a.lower()) for a in aliases if a.lower() in names)
    return out


def table(mapping, lake):
    """(rows as dicts in the order of the sources, number of rejected rows)."""
    dialect, columns = mapping.get("csv", {}), mapping["columns"]
    for column in columns:
        assert not set(column) - COLUMN_MEMBERS, column
    found = {f for pattern in mapping["files"] for f in glob.glob(os.path.join(lake, pattern), recursive=True)}
    rows, rejected = [], 0
    parsers = {c["name"]: None if "expr" in c else parser(c, dialect) for c in columns}
    for path in sorted(found):
        header, cells = records(path, dialect)
        where = places(header, columns)
        width = len(header) if header is not None else max((len(c) for c in cells), default=0)
        todo = [(c["name"], parsers[c["name"]], where.get(c["name"]), c.get("nullable", True), EXPRESSIONS.get(c.get("expr")))
                for c in columns]
        for record in cells:
            try:
                if len(record) != width:
                    raise Bad("ragged")
                row = {}
                for name, parse, place, nullable, compute in todo:
                    value = row[name] = parse(record[place]) if parse else compute(row)
                    if value is None and not nullable:
                        raise Bad("null")
                rows.append(row)
            except Bad:
                rejected += 1
    return rows, rejected


def load(config_path):
    with open(config_path, encoding="utf-8") as file:
        return json.load(file)["mappings"]

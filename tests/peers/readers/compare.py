"""One reader's verdict on every kind of value: compare.py READER WAREHOUSE [LABEL…], as JSON on standard output.

Each table is read whole, each value compared with what was written, and each column filtered by equality, order and
null; the counts must be those of the values. A reader is a class with `types`, `column` and `counts`.
"""

import datetime as dt
import decimal
import json
import math
import pathlib
import struct
import sys

import values

EPOCH, MICRO = values.EPOCH, values.MICRO
UTC = dt.timezone.utc
# The operands of filters: the minimum, the median and the maximum.
PROBES = (0.0, 0.5, 1.0)
OPERATORS = ("=", "<", ">")


def micros(moment):
    return ((moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment) - EPOCH) // MICRO


def from_python(kind, found):
    """Converts a Python object to the form of values.py; objects without a form are returned unchanged."""
    if found is None:
        return None
    if isinstance(found, dt.datetime):
        return micros(found)
    if isinstance(found, dt.date):
        return (found - EPOCH.date()).days
    if isinstance(found, dt.time):
        return ((found.hour * 60 + found.minute) * 60 + found.second) * 1_000_000 + found.microsecond
    if isinstance(found, dt.timedelta):
        return found // MICRO
    if isinstance(found, (bytes, bytearray)):
        return bytes(found).hex() if kind.base == "uuid" else bytes(found).decode()
    if hasattr(found, "hex") and kind.base == "uuid" and not isinstance(found, str):
        return found.hex
    return from_text(kind, found) if isinstance(found, str) else found


def from_text(kind, text):
    """Parses a reader's text for a value."""
    base = kind.base
    if text is None or base in ("string", "json"):
        return text
    if base == "uuid":
        return text.replace("-", "").lower()
    if base == "boolean":
        return {"true": True, "false": False}[text.lower()]
    if base.startswith(("int", "uint")):
        return int(text)
    if base.startswith("float"):
        return values.single(float(text)) if base == "float32" else float(text)
    if base == "decimal":
        return decimal.Decimal(text)
    if base == "date":
        return (dt.date.fromisoformat(text[:10]) - EPOCH.date()).days
    if base == "time" and " " in text:
        return micros(dt.datetime.fromisoformat(text))  # A moment of the first day.
    if base == "time":
        return from_python(kind, dt.time.fromisoformat(text)) if ":" in text else int(text)
    return int(text) if text.lstrip("-").isdigit() else micros(dt.datetime.fromisoformat(text))


def same(left, right):
    if left is None or right is None:
        return left is right
    if isinstance(left, float) or isinstance(right, float):
        if not all(isinstance(n, (float, int)) for n in (left, right)):
            return False
        return math.isnan(left) and math.isnan(right) if left != left else \
            left == right and math.copysign(1, left) == math.copysign(1, right)
    return type(left) is type(right) and left == right


def expected_counts(kind, name, reader):
    """{(operator, row of the value that is compared with): count}"""
    column = kind.column(name)
    order = reader.order(kind)
    filled = [(order(v), row) for row, v in enumerate(column) if v is not None and v == v]
    nans = sum(1 for v in column if v is not None and v != v)
    filled.sort()
    counts = {("null", 0): sum(v is None for v in column), ("filled", 0): len(filled) + nans}
    for probe in PROBES:
        value, row = filled[round(probe * (len(filled) - 1))]
        equal = sum(1 for v, _ in filled if v == value)
        less = sum(1 for v, _ in filled if v < value)
        counts["=", row], counts["<", row] = equal, less
        counts[">", row] = len(filled) - equal - less + (nans if reader.nan_is_greatest else 0)
    return counts


def first_words(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Of a Java exception, the cause is informative.
    causes = [line for line in lines if line.startswith("Caused by: ")] or lines[1:2] if "Py4J" in type(error).__name__ else []
    return f"{type(error).__name__}: {(causes or lines or [''])[-1 if causes else 0][:200]}"


def judge(reader, kind, path):
    """{"type": the reader's type, and one of "refused", "differs" or "filters" if a check fails}"""
    try:
        reader.open(path)
        types = reader.types()
        found = {name: reader.column(kind, name) for name in ("v", "w")}
    except BaseException as error:  # Readers of native code raise what isn't an Exception.
        if isinstance(error, KeyboardInterrupt):
            raise
        return {"refused": first_words(error)}
    verdict = {"type": types["v"]}
    differences = []
    for name, column in found.items():
        if sorted(row for row, _ in column) != list(range(values.ROWS)):
            differences.append(f"{name}: {len(column)} rows, {len(set(row for row, _ in column))} of them once")
            continue
        wanted, ordered = kind.column(name), dict(column)
        wrong = [(w, ordered[row]) for row, w in enumerate(wanted) if not same(w, ordered[row])]
        if wrong:
            differences.append(f"{name}: {len(wrong)} of {values.ROWS}, {wrong[0][0]!r} is {wrong[0][1]!r}")
    if differences:
        verdict["differs"] = "; ".join(differences)
    wrong = []
    for name in ("v", "w"):
        wanted = expected_counts(kind, name, reader)
        try:
            counts = reader.counts(kind, name, list(wanted))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            verdict["unfiltered"] = first_words(error)
            continue
        wrong += [f"{name} {op} {kind.cell(name, row).text if op in OPERATORS else ''}: {counts[op, row]} for {count}"
                  for (op, row), count in wanted.items() if counts.get((op, row), count) != count]
    if wrong:
        verdict["miscounts"] = "; ".join(wrong)
    return verdict


class Reader:
    # Whether NaN is greater than every number, rather than not comparable.
    nan_is_greatest = False

    def order(self, kind):
        """The sort key of values of a kind."""
        return lambda value: value.encode() if isinstance(value, str) else value


class PyArrow(Reader):

    def open(self, path):
        import pyarrow.dataset
        self.dataset = pyarrow.dataset.dataset(str(path), format="parquet")
        self.table = self.dataset.to_table()

    def types(self):
        return {field.name: str(field.type) for field in self.table.schema}

    def ids(self):
        return self.table["id"].to_pylist()

    def column(self, kind, name):
        return list(zip(self.ids(), (from_python(kind, v) for v in self.table[name].to_pylist())))

    def counts(self, kind, name, filters):
        import pyarrow.compute as pc
        field, place = pc.field(name), {row: n for n, row in enumerate(self.ids())}
        out = {}
        for op, row in filters:
            value = pc.scalar(self.table[name][place[row]])
            test = {"null": lambda: field.is_null(), "filled": lambda: field.is_valid(), "=": lambda: field == value,
                    "<": lambda: field < value, ">": lambda: field > value}[op]()
            out[op, row] = self.dataset.to_table(columns=["id"], filter=test).num_rows
        return out


class Polars(Reader):
    nan_is_greatest = True

    def open(self, path):
        import polars
        self.pl, self.path = polars, str(path) + "/*.parquet"
        self.frame = polars.scan_parquet(self.path).collect()

    def types(self):
        return {name: str(kind) for name, kind in self.frame.schema.items()}

    def ids(self):
        return self.frame["id"].to_list()

    def column(self, kind, name):
        return list(zip(self.ids(), (from_python(kind, v) for v in self.frame[name].to_list())))

    def counts(self, kind, name, filters):
        place = {row: n for n, row in enumerate(self.ids())}
        out, column = {}, self.pl.col(name)
        for op, row in filters:
            value = self.frame[name][place[row]] if op in OPERATORS else None
            literal = self.pl.lit(value, dtype=self.frame.schema[name])
            test = {"null": lambda: column.is_null(), "filled": lambda: column.is_not_null(), "=": lambda: column == literal,
                    "<": lambda: column < literal, ">": lambda: column > literal}[op]()
            out[op, row] = self.pl.scan_parquet(self.path).filter(test).select(self.pl.len()).collect().item()
        return out


class FastParquet(Reader):
    def open(self, path):
        import fastparquet
        self.file = fastparquet.ParquetFile(str(next(path.glob("*.parquet"))))
        self.frame = self.file.to_pandas()

    def types(self):
        return {name: str(kind) for name, kind in self.frame.dtypes.items()}

    def ids(self):
        return [int(n) for n in self.frame["id"]]

    def column(self, kind, name):
        return list(zip(self.ids(), self.series(kind, self.frame[name])))

    def series(self, kind, series):
        filled = series.notna()
        if str(series.dtype).startswith(("datetime64", "timedelta64")):
            unit = {"ns": 1_000, "us": 1, "ms": 1 / 1_000, "s": 1 / 1_000_000}[str(series.dtype).split("[")[1].split("]")[0].split(",")[0]]
            numbers = [int(n) for n in series.astype("int64")]
            numbers = [None if not ok else n // unit if unit >= 1 else n * round(1 / unit) for n, ok in zip(numbers, filled)]
            if kind.base == "date":
                return [None if n is None else n // 86_400_000_000 for n in numbers]
            return numbers
        if kind.base.startswith("float"):
            # NaN also represents null.
            return [float(n) for n in series]
        return [None if not ok else from_python(kind, v.item() if hasattr(v, "item") else v) for v, ok in zip(series, filled)]

    def counts(self, kind, name, filters):
        place = {row: n for n, row in enumerate(self.ids())}
        names = {"=": "==", "<": "<", ">": ">"}
        out = {}
        for op, row in filters:
            if op in OPERATORS:
                test = [(name, names[op], self.frame[name].iloc[place[row]])]
                out[op, row] = len(self.file.to_pandas(columns=["id"], filters=[test], row_filter=True))
        return out  # It has no filter for null.


class Sql(Reader):
    """SQL readers: all counts in one statement, each from a scan with its own filter."""

    def counts(self, kind, name, filters):
        branches = []
        for number, (op, row) in enumerate(filters):
            literal = self.literal(kind, name, kind.cell(name, row)) if op in OPERATORS else None
            test = {"null": f"{name} IS NULL", "filled": f"{name} IS NOT NULL"}.get(op) or f"{name} {op} {literal}"
            branches.append(f"SELECT {number} AS n FROM {self.source} WHERE {test}")
        union = " UNION ALL ".join(branches)
        found = {int(n): int(c) for n, c in self.rows(f"SELECT n, count(*) FROM ({union}) AS u GROUP BY n")}
        return {key: found.get(number, 0) for number, key in enumerate(filters)}


class DuckDb(Sql):
    nan_is_greatest = True

    def open(self, path):
        import duckdb
        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'America/New_York'")
        self.source = f"read_parquet('{path}/*.parquet')"

    def rows(self, sql):
        return self.db.execute(sql).fetchall()

    def types(self):
        return {row[0]: row[1] for row in self.rows(f"DESCRIBE FROM {self.source}")}

    def column(self, kind, name):
        amount = f"epoch_us({name})" if kind.base.startswith("timestamp") else name
        return [(row[0], from_python(kind, row[1])) for row in self.rows(f"SELECT id, {amount} FROM {self.source}")]

    def literal(self, kind, name, cell):
        return f"CAST('{cell.text.replace(chr(39), chr(39) * 2)}' AS {self.types()[name]})"


class ClickHouse(Sql):
    def order(self, kind):
        """ClickHouse orders UUIDs by their second half first."""
        return (lambda digits: digits[16:] + digits[:16]) if "UUID" in self.types()["v"] else super().order(kind)

    def open(self, path):
        import chdb
        self.chdb = chdb
        self.source = f"file('{path}/*.parquet', Parquet)"
        self.known = None

    def rows(self, sql):
        settings = " SETTINGS session_timezone = 'America/New_York'"
        text = self.chdb.query(sql + settings, "JSONCompactEachRow").bytes().decode()
        return [json.loads(line) for line in text.splitlines()]

    def types(self):
        if self.known is None:
            self.known = {row[0]: row[1] for row in self.rows(f"DESCRIBE TABLE {self.source}")}
        return self.known

    def column(self, kind, name):
        known = self.types()[name]
        text = f"toString({name})"
        if kind.base == "timestamptz":
            text = f"toString(toUnixTimestamp64Micro({name}))"
        elif "FixedString" in known:
            text = f"hex({name})"
        return [(row[0], from_text(kind, row[1])) for row in self.rows(f"SELECT id, {text} FROM {self.source}")]

    def literal(self, kind, name, cell):
        known = self.types()[name].removeprefix("Nullable(").removesuffix(")") if self.types()[name].startswith("Nullable(") \
            else self.types()[name]
        if "FixedString" in known:
            return f"unhex('{cell.value}')"
        text = cell.text.removesuffix("Z") if kind.base == "timestamptz" else cell.text
        if "DateTime64" in known:
            return f"fromUnixTimestamp64Micro(toInt64({cell.value}), 'UTC')"
        if kind.base.startswith("float"):
            bits = kind.base.removeprefix("float")
            digits = struct.unpack({"32": "<I", "64": "<Q"}[bits], struct.pack({"32": "<f", "64": "<d"}[bits], cell.value))[0]
            return f"reinterpretAsFloat{bits}(toUInt{bits}({digits}))"
        text = text.replace("\\", "\\\\").replace("'", "\\'")
        return f"CAST('{text}' AS {known})"


class Spark(Sql):
    nan_is_greatest = True
    session = None

    def start(self):
        if Spark.session is None:
            from pyspark.sql import SparkSession
            settings = {"spark.ui.enabled": "false", "spark.sql.session.timeZone": "America/New_York", "spark.driver.memory": "2g",
                        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": "1",
                        "spark.sql.adaptive.enabled": "false", "spark.ui.showConsoleProgress": "false"}
            builder = SparkSession.builder.master("local[1]")
            for name, value in settings.items():
                builder = builder.config(name, value)
            Spark.session = builder.getOrCreate()
            Spark.session.sparkContext.setLogLevel("OFF")

    def open(self, path):
        self.start()
        self.frame = Spark.session.read.parquet(str(path))
        self.source = "t"
        self.frame.createOrReplaceTempView("t")

    def rows(self, sql):
        return [tuple(row) for row in Spark.session.sql(sql).collect()]

    def types(self):
        return dict(self.frame.dtypes)

    def column(self, kind, name):
        known = self.types()[name]
        text = f"cast({name} AS string)"
        if known == "binary":
            text = f"hex({name})"
        elif kind.base == "timestamptz":
            text = f"cast(unix_micros({name}) AS string)"
        return [(row[0], from_text(kind, row[1])) for row in self.rows(f"SELECT id, {text} FROM t")]

    def literal(self, kind, name, cell):
        known = self.types()[name]
        if kind.base == "timestamptz":
            return f"timestamp_micros({cell.value})"
        text = cell.text.replace("\\", "\\\\").replace("'", "\\'")
        return f"CAST('{text}' AS {known})"


READERS = {"pyarrow": PyArrow, "Polars": Polars, "DuckDB": DuckDb, "ClickHouse": ClickHouse, "fastparquet": FastParquet, "Spark": Spark}


def main(name, warehouse, labels):
    warehouse = pathlib.Path(warehouse)
    reader = READERS[name]()
    for kind in values.distinct(warehouse):
        if not labels or kind.label in labels:
            print(json.dumps({"label": kind.label}), flush=True)
            print(json.dumps({"label": kind.label} | judge(reader, kind, warehouse / kind.table)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])

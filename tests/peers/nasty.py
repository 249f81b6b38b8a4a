"""Makes a lake of CSVs that are hard to read, and its pipeline.json: nasty.py DIR. The same bytes every time."""

import datetime as dt
import decimal
import gzip
import json
import os
import random
import sys
import uuid

WORDS = ["plain", "with, comma", 'say "hi"', "two\nlines", "two\r\nlines", "", " padded ", "München", "東京", "🦆", "'", "a;b",
         "\t", "NA", "null", '"', '""', ",", "#no comment", "\\", "x" * 3000]


def quote(text, always=False, delimiter=","):
    if always or any(c in text for c in (delimiter, '"', "\n", "\r")) or text == "":
        return '"' + text.replace('"', '""') + '"'
    return text


def put(root, name, data):
    path = os.path.join(root, "lake", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def quotes(root, rng):
    """A byte order mark, CRLF, quoted newlines, delimiters and quotes, and no newline at the end."""
    lines = ["id,name,amount"]
    for n in range(5_000):
        amount = "" if n % 7 == 0 else str(rng.randint(-10**9, 10**9))
        lines.append(f"{n},{quote(rng.choice(WORDS), rng.random() < 0.5)},{amount}")
    put(root, "quotes/a.csv", b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    lines = ["AMOUNT,Name,ID,extra"] + [f"{n},{quote(rng.choice(WORDS))},{5_000 + n},{n}" for n in range(500)]
    put(root, "quotes/deeper/b.csv.gz", gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    put(root, "quotes/empty.csv", b"id,name,amount\n")
    return {"table": "quotes", "files": ["quotes/**/*.csv", "quotes/**/*.csv.gz"],
            # Python's csv module can't tell an empty cell that is quoted from one that is not.
            "csv": {"quoted_nulls": True},
            "columns": [{"name": "id", "type": "int32", "nullable": False}, {"name": "name", "type": "string"},
                        {"name": "amount", "type": "int64"},
                        {"name": "doubled", "expr": "amount * 2", "type": "int64"},
                        {"name": "shout", "expr": "upper(name)", "type": "string"}]}


def european(root, rng):
    """Windows-1252, semicolons, decimal commas, day first, a preamble and a footer."""
    lines = ["Export vom 01.02.2024", "Kasse; Süd", "Tag;Betrag;Ort"]
    start = dt.date(1999, 12, 25)
    for n in range(2_000):
        cents = rng.randint(-10**9, 10**9) or 1
        text = f"{abs(cents) // 100:,}".replace(",", ".") + f",{abs(cents) % 100:02d}"
        day = (start + dt.timedelta(n)).strftime("%d.%m.%Y")
        lines.append(f"{day};{'-' if cents < 0 else ''}{text};{rng.choice(['Köln', 'Zürich', '„Süd“', 'k. A.', '€'])}")
    put(root, "european/kasse.csv", ("\n".join(lines + ["Summe;;", "Ende;;"]) + "\n").encode("cp1252"))
    return {"table": "european", "files": ["european/*.csv"],
            "csv": {"delimiter": ";", "encoding": "windows-1252", "decimal": ",", "thousands": ".", "skip_rows": 2,
                    "skip_footer_rows": 2, "null_values": ["k. A."]},
            "columns": [{"name": "day", "from": "Tag", "type": "date", "formats": ["%d.%m.%Y"], "nullable": False},
                        {"name": "amount", "from": "Betrag", "type": "decimal(12,2)"},
                        {"name": "place", "from": ["Stadt", "ort"], "type": "string"}]}


def utf16(root, rng):
    lines = ["n\ttext"] + [f"{n}\t{quote(rng.choice(WORDS), delimiter=chr(9))}" for n in range(1_500)]
    text = "\n".join(lines) + "\n"
    put(root, "utf16/little.csv", b"\xff\xfe" + text.encode("utf-16-le"))
    put(root, "utf16/big.csv", b"\xfe\xff" + text.encode("utf-16-be"))
    return {"table": "utf16", "files": ["utf16/*.csv"],
            "csv": {"delimiter": "\t", "null_values": ["NA"], "quoted_nulls": True},
            "columns": [{"name": "n", "type": "uint16", "nullable": False}, {"name": "text", "type": "string"}]}


def types(root, rng):
    """Every type, its extremes included."""
    kinds = {f"{s}int{b}": (-(1 << b - 1), (1 << b - 1) - 1) if not s else (0, (1 << b) - 1)
             for b in (8, 16, 32, 64) for s in ("", "u")}
    made = {kind: lambda n, r=r: str(r[n] if n < 2 else rng.randint(*r)) for kind, r in kinds.items()}
    first, last = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)

    def time(n):
        if n < 2:
            return (first, last)[n]
        return dt.datetime(2000, 1, 1) + dt.timedelta(microseconds=rng.randint(-10**15, 10**15))

    def exact(precision, scale):
        def make(n):
            top = 10**precision - 1
            # Small except for the extremes, so that the sum fits 38 digits.
            value = decimal.Decimal((top, -top)[n] if n < 2 else rng.randint(1, min(top, 10**30)))
            with decimal.localcontext(prec=100):
                return f"{value.scaleb(-scale):f}"
        return make

    made |= {
        "float64": lambda n: ("1.7976931348623157e308", "5e-324", "-0.1")[n] if n < 3 else repr(rng.gauss(0, 1000)),
        "decimal(38,10)": exact(38, 10), "decimal(9,0)": exact(9, 0), "decimal(18,18)": exact(18, 18),
        "boolean": lambda n: rng.choice(["true", "false", "yes", "no"]),
        "date": lambda n: time(n).date().isoformat(),
        "time": lambda n: time(n).time().isoformat(timespec="microseconds"),
        "timestamp": lambda n: time(n).isoformat(" ", "microseconds") if n % 2 else time(n).isoformat("T", "microseconds"),
        "timestamptz": lambda n: dt.datetime.fromtimestamp(rng.randint(0, 2 * 10**9), dt.timezone.utc)
            .astimezone(dt.timezone(dt.timedelta(minutes=rng.choice([-330, 0, 60, 765])))).isoformat(),
        "uuid": lambda n: str(uuid.UUID(int=rng.getrandbits(128))),
        "json": lambda n: json.dumps({"n": n, "text": rng.choice(WORDS[:10])}),
    }
    names = {kind: "c_" + "".join(c if c.isalnum() else "_" for c in kind).strip("_") for kind in made}
    lines = [",".join(names.values())]
    for n in range(3_000):
        lines.append(",".join("-" if n > 5 and rng.random() < 0.1 else quote(make(n)) for make in made.values()))
    put(root, "types/all.csv", ("\n".join(lines) + "\n").encode())
    return {"table": "types", "files": ["types/all.csv"],
            "csv": {"null_values": ["-"], "true_values": ["true", "yes"], "false_values": ["false", "no"]},
            "columns": [{"name": names[kind], "type": kind} for kind in made]}


def zones(root, rng):
    """Local times of a zone, without ambiguous or skipped ones."""
    lines = ["at,shop"]
    for n in range(1_000):
        at = dt.datetime(2024, 1, 1, 12) + dt.timedelta(hours=6 * n)
        lines.append(f"{at:%m/%d/%Y %H:%M},{rng.randint(1, 9)}")
    put(root, "zones.csv", "\n".join(lines).encode())
    return {"table": "zones", "files": ["zones.csv"],
            "columns": [{"name": "at", "type": "timestamptz", "formats": ["%m/%d/%Y %H:%M"], "timezone": "Europe/Berlin"},
                        {"name": "shop", "type": "int8"}]}


def headless(root, rng):
    """No header, comments, lone CRs, a backslash before quotes, columns by position."""
    rows = []
    for n in range(800):
        if n % 50 == 0:
            rows.append("# a comment, with a comma")
        rows.append('"%s",%d,"%s"' % (rng.choice(["a", 'b\\"c', "d,e", "é"]), n, rng.choice(["x", "y"])))
    put(root, "headless.csv", ("\r".join(rows) + "\r").encode())
    return {"table": "headless", "files": ["headless.csv"],
            "csv": {"header": False, "comment": "#", "record_terminator": "cr", "escape": "\\"},
            "columns": [{"name": "n", "from": 1, "type": "int32"}, {"name": "text", "from": 0, "type": "string"},
                        {"name": "side", "from": 2, "type": "string"}]}


def rejected(root, rng):
    """Rows that must be rejected, among valid rows."""
    lines = ["id,size,price"]
    for n in range(4_000):
        lines.append({3: f"{n}", 7: f"{n},1,2.50,4", 11: f"{n},128,1.00", 13: f"{n},1.5,1.00", 17: f",1,1.00", 19: f"{n},1,1.005",
                      23: f"{n}, 1,1.00", 29: f"{n},1,1e2", 31: f"{n},0x1,1.00"}.get(n % 37, f"{n},{rng.randint(-128, 127)},9.99"))
    put(root, "rejected/a.csv", ("\n".join(lines) + "\n").encode())
    put(root, "rejected/b.csv", ("\r\n".join(lines[:50]) + "\r\n").encode())
    return {"table": "rejected", "files": ["rejected/*.csv"], "rejects": {"max_ratio": 1.0},
            "columns": [{"name": "id", "type": "int32", "nullable": False}, {"name": "size", "type": "int8"},
                        {"name": "price", "type": "decimal(6,2)"}]}


def partitioned(root, rng):
    """Partition values that paths must escape, a null, and a day taken from a time."""
    for part in range(3):
        lines = ["key,at,value"]
        for n in range(1_000):
            key = rng.choice(["a/b", "50%", "x=y", "a b", "München", "?", "\\N", "2013-01-01", "A", "a", ":", "{", "東京"])
            at = dt.datetime(2024, 2, 27) + dt.timedelta(minutes=rng.randint(0, 4 * 1440))
            lines.append(f"{key},{at.isoformat() if n % 101 else chr(92) + 'N'},{n}")
        put(root, f"partitioned/{part}.csv", ("\n".join(lines) + "\n").encode())
    return {"table": "partitioned", "files": ["partitioned/*.csv"], "csv": {"null_values": ["\\N"]},
            "columns": [{"name": "key", "type": "string"}, {"name": "at", "type": "timestamp"},
                        {"name": "value", "type": "int32"}],
            "partition_by": [{"column": "at", "transform": "day", "name": "day"}, "key"]}


def main(root):
    rng = random.Random(2013)
    makers = [quotes, european, utf16, types, zones, headless, rejected, partitioned]
    config = {"version": 1, "title": "Hard to read", "mappings": [make(root, rng) for make in makers]}
    with open(os.path.join(root, "pipeline.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2, ensure_ascii=False)


if __name__ == "__main__":
    main(sys.argv[1])

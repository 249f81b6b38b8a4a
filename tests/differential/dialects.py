"""Random dialects, and files made of their special tokens."""

import program

DELIMITERS = [",", ",", ",", ";", "\t", "|", " ", "||", "::", "§", "→", "a", "\x1f", ",;", "--"]
ENCODINGS = ["utf-8"] * 8 + ["utf-16le", "utf-16be", "latin1", "windows-1252", "windows-1251", "iso-8859-15", "iso-8859-7", "shift_jis", "gbk", "euc-jp", "big5"]
MARKED = {"utf-8": b"\xef\xbb\xbf", "utf-16le": b"\xff\xfe", "utf-16be": b"\xfe\xff"}
CODECS = {"latin1": "cp1252", "gbk": "gb18030", "shift_jis": "cp932", "iso-8859-15": "iso8859-15", "windows-1252": "cp1252",
          "windows-1251": "cp1251", "iso-8859-7": "iso8859-7", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}
WIDE = {"utf-8": "éß東🙂", "utf-16le": "éß東🙂", "utf-16be": "éß東🙂", "latin1": "éß€", "windows-1252": "éß€", "windows-1251": "жЯ", "iso-8859-15": "é€",
        "iso-8859-7": "λΩ", "shift_jis": "あア漢", "gbk": "汉字", "euc-jp": "あ漢", "big5": "漢字"}


def maybe(rng, chance, value, other=None):
    return value if rng.random() < chance else other


def dialect(rng):
    csv = {}
    csv["delimiter"] = rng.choice(DELIMITERS)
    csv["quote"] = rng.choice(['"', '"', '"', '"', "'", "`", None])
    if csv["quote"]:
        csv["escape"] = maybe(rng, 0.25, rng.choice(["\\", "^"]))
    csv["quotes"] = maybe(rng, 0.3, "lenient", "strict")
    csv["comment"] = maybe(rng, 0.25, rng.choice(["#", "%", "x"]))
    csv["record_terminator"] = maybe(rng, 0.15, "cr", "auto")
    csv["blank_lines"] = rng.choice(["skip", "skip", "null", "reject"])
    csv["skip_rows"] = maybe(rng, 0.2, rng.randint(1, 3), 0)
    csv["skip_footer_rows"] = maybe(rng, 0.2, rng.randint(1, 3), 0)
    values = [None, None, [], ["A"], ["x*", "na"], ["1", "-", "*b"], [" a ", "*"]]
    csv["footer_values"] = rng.choice(values) if csv["skip_footer_rows"] else None
    csv["header"] = rng.random() < 0.7
    if csv["header"]:
        csv["skip_rows_after_header"] = maybe(rng, 0.2, rng.randint(1, 2), 0)
    csv["encoding"] = rng.choice(ENCODINGS)
    csv["null_values"] = rng.choice([[""], [""], [], ["NA", ""], ["-"], ["NA", "n/a", "a"], [" "]])
    csv["quoted_nulls"] = rng.random() < 0.3
    csv["trim"] = rng.random() < 0.3
    csv["ragged_rows"] = rng.choice(["reject", "reject", "pad", "pad", maybe(rng, 0.1, "fail", "reject")])
    csv["record_bytes_max"] = maybe(rng, 0.1, rng.choice([1024, 1100]), 2097152)
    defaults = {"delimiter": ",", "quote": '"', "quotes": "strict", "record_terminator": "auto", "blank_lines": "skip", "skip_rows": 0,
                "skip_footer_rows": 0, "footer_values": None, "skip_rows_after_header": 0, "header": True, "encoding": "utf-8", "null_values": [""], "quoted_nulls": False,
                "trim": False, "ragged_rows": "reject", "record_bytes_max": 2097152, "escape": None, "comment": None}
    return {name: value for name, value in csv.items() if value != defaults[name]}


class Maker:
    def __init__(self, rng, csv, width):
        self.rng, self.csv, self.width = rng, csv, width
        self.delimiter, self.quote = csv.get("delimiter", ","), csv.get("quote", '"')
        self.escape, self.comment = csv.get("escape"), csv.get("comment")
        # `csv.encoding` is the encoding of the text, or a byte order mark declares it.
        self.label = csv.get("encoding", "utf-8")
        self.cr = csv.get("record_terminator") == "cr"
        self.ends = ["\r"] if self.cr else [rng.choice(["\n", "\r\n"])] * 3 + ["\n", "\r\n"]
        wide = list(WIDE[self.label])
        special = [self.delimiter, self.quote or '"', self.escape or "\\", self.comment or "#", "\n", "\r", "\r\n", " ", "\t", "a", "b", "NA", "-", ""]
        self.tokens = special + wide + [c for c in ("1", "x", "\x00", "\x0b", "\x0c") if rng.random() < 0.5]

    def word(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.15:
            return rng.choice(["", "NA", "n/a", "-", " ", "a", " NA ", "\t"])
        if kind < 0.17:
            return rng.choice("pq") * rng.choice([300, 1015, 1024, 1030, 2000])
        return "".join(rng.choice(self.tokens) for _ in range(rng.choice([1, 1, 2, 3, 6])))

    def quoted(self, word):
        quote = self.quote
        if self.escape:
            return quote + word.replace(self.escape, self.escape * 2).replace(quote, self.escape + quote) + quote
        return quote + word.replace(quote, quote * 2) + quote

    def cell(self):
        word = self.word()
        special = [self.delimiter, "\n", "\r"] + ([self.quote] if self.quote else [])
        if self.quote and (any(s in word for s in special) or self.rng.random() < 0.2):
            return self.quoted(word)
        if not self.quote:
            for s in special:
                word = word.replace(s, "")
        return word

    def row(self, width):
        return self.delimiter.join(self.cell() for _ in range(width)) + self.rng.choice(self.ends)

    def line(self):
        kind = self.rng.random()
        if kind < 0.62:
            return self.row(self.width)
        if kind < 0.70:
            return self.row(max(1, self.width + self.rng.choice([-1, 1, 2])))
        if kind < 0.80:
            return self.rng.choice(self.ends)
        if kind < 0.86 and self.comment:
            return self.comment + self.word() + self.rng.choice(self.ends)
        if kind < 0.93:
            # Special tokens in random order.
            return "".join(self.rng.choice(self.tokens) for _ in range(self.rng.randint(1, 9))) + self.rng.choice(self.ends + [""])
        if kind < 0.95 and self.quote:
            return self.rng.choice([f"{self.quote}ab{self.quote}c", f"a{self.quote}b", f"{self.quote}{self.quote}{self.quote}"]) + self.rng.choice(self.ends)
        return self.row(self.width)

    def file(self, header):
        rng, out = self.rng, []
        for _ in range(self.csv.get("skip_rows", 0)):
            out.append(rng.choice(["title", self.quote or "", "", "a" + self.delimiter]) + rng.choice(self.ends))
        if self.csv.get("header", True):
            if rng.random() < 0.2:
                out.append(rng.choice(self.ends))
            if self.comment and rng.random() < 0.3:
                out.append(self.comment + " no header" + rng.choice(self.ends))
            out.append(self.delimiter.join(header) + rng.choice(self.ends))
        for _ in range(self.csv.get("skip_rows_after_header", 0)):
            # Records to skip; one that is never closed, or too long, must not take rows with it.
            out.append(rng.choice([self.quote or "", "unit", self.delimiter, "z" * 1200]) + rng.choice(self.ends))
        out += [self.line() for _ in range(rng.choice([0, 1, 2, 5, 5, 12, 30]))]
        text = "".join(out)
        if rng.random() < 0.3:
            text = text.rstrip("\r\n") if rng.random() < 0.5 else text + rng.choice(["\r", "\n", self.quote or "", self.delimiter, " "])
        data = text.encode(CODECS.get(self.label, self.label), "replace")
        if self.label in MARKED and rng.random() < 0.3:
            data = MARKED[self.label] + data
        if self.label in ("utf-8", "utf-16le", "utf-16be", "iso-8859-7") and rng.random() < 0.12 and data:
            # A byte that may be invalid in the encoding.
            body = len(text.encode(CODECS.get(self.label, self.label), "replace"))
            at = rng.randrange(max(1, len(data) - body // 2), len(data) + 1)
            data = data[:at] + rng.choice([b"\xff", b"\xc3", b"\xe2\x82", b"\x00\xd8", b"\xae"]) + data[at:]
        return data


def case(rng):
    while True:
        csv = dialect(rng)
        delimiter, quote = csv.get("delimiter", ","), csv.get("quote", '"')
        marks = [quote, csv.get("escape"), csv.get("comment")]
        if any(mark and mark in delimiter for mark in marks) or len({m for m in marks if m}) < len([m for m in marks if m]):
            continue
        label = csv.get("encoding", "utf-8")
        try:
            delimiter.encode(CODECS.get(label, label))
        except UnicodeEncodeError:
            continue
        break
    width = rng.choice([1, 1, 2, 3, 4])
    names = [f"Col{n}" for n in range(width)]
    columns = [{"name": name, "type": "string"} for name in names]
    mapping = {"columns": columns}
    header = list(names)
    if csv.get("header", True):
        rng.shuffle(header)
        header = [rng.choice([name, name.lower(), f" {name} ", name.upper()]) for name in header]
        if "a" in delimiter:
            header = [name.replace("A", "a") for name in header]
        if rng.random() < 0.2:
            header.insert(rng.randrange(len(header) + 1), "more")
        if rng.random() < 0.03:
            header.append(names[0])
            mapping["duplicate_columns"] = rng.choice(["first", "fail"])
        if rng.random() < 0.1:
            columns.append({"name": "absent", "from": ["gone", "missing"], "type": "string"})
            mapping["missing_columns"] = rng.choice(["null", "null", "null", "fail"])
        if rng.random() < 0.03:
            mapping["extra_columns"] = "fail"
        if quote and rng.random() < 0.3:
            header = [quote + name + quote for name in header]
    else:
        if rng.random() < 0.3:
            csv["width"] = width + rng.randint(0, 2)
        if rng.random() < 0.3:
            for column, at in zip(columns, rng.sample(range(width), width)):
                column["from"] = at
        if rng.random() < 0.3:
            mapping["missing_columns"] = "null"
    for column in columns:
        if rng.random() < 0.15:
            column["nullable"] = False
    if csv:
        mapping["csv"] = csv
    maker = Maker(rng, csv, len(header) if csv.get("header", True) else csv.get("width", width))
    files = {f"{n}.csv": maker.file(header) for n in range(rng.choice([1, 1, 1, 2]))}
    return program.Case(mapping, files)

"""The oracle's reader: splits the bytes of a file into records with their cells and positions, and into other spans.

Written from docs/pipelines.md, for a str and with Python's `re`; it shares nothing with the program's reader.
"""

import re
from dataclasses import dataclass, field

MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
# Labels of the WHATWG Encoding Standard: Python's codec. `latin1` is windows-1252 there.
SINGLE_BYTE = {"windows-1252": "cp1252", "latin1": "cp1252", "iso-8859-1": "cp1252", "windows-1251": "cp1251",
               "iso-8859-15": "iso8859-15", "iso-8859-7": "iso8859-7"}
MULTI_BYTE = {"shift_jis": "cp932", "gbk": "gb18030", "euc-jp": "euc_jp", "big5": "big5"}
# White space by Unicode, by which header cells are trimmed. Python's own list has four control characters more.
WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
ASCII_WHITE = " \t\n\x0c\r"
LONE_CR_LINES = 100


class Refused(Exception):
    """The file fails the run; the text is the code of the error."""


@dataclass
class Text:
    """A decoded file: an invalid sequence is one character (a lone surrogate for UTF-8, else U+FFFD)."""

    text: str
    offsets: object
    mark: int
    utf8: bool
    invalid: set = field(default_factory=set)

    def utf8_bytes(self, start, end):
        part = self.text[start:end]
        return len(part) if part.isascii() else len(part.encode("utf-8", "surrogateescape"))

    def is_invalid(self, start, end):
        if self.utf8:
            part = self.text[start:end]
            return not part.isascii() and any("\udc80" <= c <= "\udcff" for c in part)
        return any(start <= at < end for at in self.invalid)


def decode(data, label):
    mark = 0
    for bom, encoding in MARKS:
        if data.startswith(bom):
            label, mark = encoding, len(bom)
            break
    body = data[mark:]
    if label == "utf-8":
        if body.isascii():
            return Text(body.decode(), range(mark, mark + len(body) + 1), mark, True)
        text = body.decode("utf-8", "surrogateescape")
        offsets, at = [], mark
        for c in text:
            offsets.append(at)
            at += 1 if c < "\x80" or "\udc80" <= c <= "\udcff" else 2 if c < "\u0800" else 3 if c < "\U00010000" else 4
        return Text(text, offsets + [at], mark, True)
    if label in ("utf-16le", "utf-16be"):
        return utf16(body, mark, "little" if label == "utf-16le" else "big")
    if label in SINGLE_BYTE:
        text, invalid = [], set()
        codec = SINGLE_BYTE[label]
        for at, byte in enumerate(body):
            try:
                text.append(bytes([byte]).decode(codec))
            except UnicodeDecodeError:
                # The standard maps bytes that Microsoft left undefined to control characters; ISO encodings have
                # undefined bytes.
                text.append(chr(byte) if codec.startswith("cp") else "\ufffd")
                if not codec.startswith("cp"):
                    invalid.add(at)
        return Text("".join(text), range(mark, mark + len(text) + 1), mark, False, invalid)
    text = body.decode(MULTI_BYTE[label])
    offsets, at = [], mark
    for c in text:
        offsets.append(at)
        at += len(c.encode(MULTI_BYTE[label]))
    return Text(text, offsets + [at], mark, False)


def utf16(body, mark, order):
    text, offsets, invalid = [], [], set()
    units = [int.from_bytes(body[at:at + 2], order) for at in range(0, len(body) - 1, 2)]
    at = 0
    while at < len(units):
        unit = units[at]
        offsets.append(mark + 2 * at)
        if 0xD800 <= unit < 0xDC00 and at + 1 < len(units) and 0xDC00 <= units[at + 1] < 0xE000:
            text.append(chr(0x10000 + ((unit - 0xD800) << 10) + (units[at + 1] - 0xDC00)))
            at += 2
            continue
        if 0xD800 <= unit < 0xE000:
            invalid.add(len(text))
            unit = 0xFFFD
        text.append(chr(unit))
        at += 1
    if len(body) % 2:
        offsets.append(mark + len(body) - 1)
        invalid.add(len(text))
        text.append("\ufffd")
    return Text("".join(text), offsets + [mark + len(body)], mark, False, invalid)


@dataclass
class Record:
    start: int
    end: int
    next: int
    # (text, whether it is quoted)
    cells: list
    stray: bool
    unclosed: bool


class Tokeniser:
    def __init__(self, csv, terminator=None):
        self.delimiter = csv.get("delimiter", ",")
        self.quote = csv.get("quote", '"')
        self.escape = csv.get("escape")
        self.comment = csv.get("comment")
        self.crlf = (terminator or csv.get("record_terminator", "auto")) == "auto"
        self.newline = "\n" if self.crlf else "\r"
        self.blank_lines = csv.get("blank_lines", "skip")
        stops = [self.newline, self.delimiter] + ([self.quote] if self.quote else [])
        self.stop = re.compile("|".join(map(re.escape, stops)))
        if self.quote:
            q = re.escape(self.quote)
            if self.escape:
                e = re.escape(self.escape)
                self.inner = re.compile(f"[^{q}{e}]*(?:{e}.[^{q}{e}]*)*", re.S)
                self.escaped = re.compile(f"{e}(.)", re.S)
            else:
                self.inner = re.compile(f"[^{q}]*(?:{q}{q}[^{q}]*)*", re.S)

    def content(self, inner):
        if self.escape:
            return self.escaped.sub(lambda found: found[1], inner)
        return inner.replace(self.quote * 2, self.quote)

    def record(self, text, start):
        cells, stray, at = [], False, start
        while True:
            begin, prefix, quoted = at, "", False
            if self.quote and text.startswith(self.quote, at):
                quoted = True
                closing = self.inner.match(text, at + 1).end()
                if closing >= len(text) or text[closing] != self.quote:
                    return Record(start, len(text), len(text), cells + [("", True)], stray, True)
                prefix, begin = self.content(text[at + 1:closing]), closing + 1
                at = begin
                ends = at == len(text) or text[at] == self.newline or text.startswith(self.delimiter, at)
                ends = ends or (self.crlf and text.startswith("\r\n", at))
                stray = stray or not ends
            while True:
                found = self.stop.search(text, at)
                if found is None:
                    cells.append((prefix + text[begin:], quoted))
                    return Record(start, len(text), len(text), cells, stray, False)
                at = found.start()
                if found[0] != self.quote:
                    break
                stray, at = True, at + 1
            if found[0] == self.newline:
                end = at - (1 if self.crlf and at > begin and text[at - 1] == "\r" else 0)
                cells.append((prefix + text[begin:end], quoted))
                return Record(start, end, at + 1, cells, stray, False)
            cells.append((prefix + text[begin:at], quoted))
            at = found.end()

    def blank(self, text, at):
        """Where the blank line that starts at `at` ends; None if none does."""
        if text.startswith(self.newline, at):
            return at + 1
        return at + 2 if self.crlf and text.startswith("\r\n", at) else None


@dataclass
class Reading:
    """A parsed file. `spans` are (kind, start, end) in order, and cover the text."""

    header: list = None
    # (record, reason or None)
    records: list = field(default_factory=list)
    first_width: int = 0
    blank_lines: int = 0
    spans: list = field(default_factory=list)


def has_lone_cr(line):
    return "\r" in line[:-1]


class Reader:
    def __init__(self, source, csv):
        self.source, self.text, self.csv = source, source.text, csv
        self.tokens = Tokeniser(csv)
        self.limit = csv.get("record_bytes_max", 2097152)
        self.at = 0
        self.out = Reading()

    def take(self, kind, end):
        self.out.spans.append((kind, self.at, end))
        self.at = end

    def gaps(self, skips_blank=None):
        """Skips comments, and blank lines where these are not records. True if a record follows."""
        skips_blank = self.tokens.blank_lines == "skip" if skips_blank is None else skips_blank
        while self.at < len(self.text):
            blank = self.tokens.blank(self.text, self.at) if skips_blank else None
            if blank is not None:
                self.take("blank", blank)
                self.out.blank_lines += 1
            elif self.tokens.comment and self.text[self.at] == self.tokens.comment:
                end = self.text.find(self.tokens.newline, self.at)
                if end < 0:
                    self.last_comment = self.text[self.at:]
                self.take("comment", len(self.text) if end < 0 else end + 1)
            else:
                return True
        return False

    def too_long(self, record):
        return self.source.utf8_bytes(record.start, record.end) > self.limit

    def skip_lines(self):
        for _ in range(self.csv.get("skip_rows", 0)):
            end = self.text.find(self.tokens.newline, self.at)
            if end < 0:
                if self.tokens.crlf and has_lone_cr(self.text[self.at:]):
                    raise Refused("header_mismatch")
                if self.at < len(self.text):
                    self.take("skipped", len(self.text))
                return
            self.take("skipped", end + 1)

    def before_records(self, skips_blank=None):
        """As `gaps`, before the first record; a file of lone CRs looks like one comment."""
        self.last_comment = ""
        more = self.gaps(skips_blank)
        if self.tokens.crlf and has_lone_cr(self.last_comment):
            raise Refused("header_mismatch")
        return more

    def header(self):
        if not self.before_records(True):
            return []
        record = self.tokens.record(self.text, self.at)
        if record.unclosed or self.too_long(record) or self.source.is_invalid(record.start, record.end):
            raise Refused("header_mismatch")
        if self.tokens.crlf and any("\r" in cell for cell, quoted in record.cells if not quoted):
            raise Refused("header_mismatch")
        self.take("header", record.next)
        return [cell.strip(WHITE) for cell, _ in record.cells]

    def skip_record(self):
        record = self.tokens.record(self.text, self.at)
        if record.unclosed or self.too_long(record):
            self.out.records.append((record, "unclosed_quote" if record.unclosed else "record_too_long"))
            self.take("record", record.next)
        else:
            self.take("skipped", record.next)

    def check_first(self, record, width):
        """A file whose lines end in CR alone is one record with CRs in it."""
        line = self.text[record.start:record.end]
        if not self.tokens.crlf or "\r" not in line:
            return
        reader = Reader(Text(line, None, 0, True), {**self.csv, "record_terminator": "cr", "skip_rows": 0, "skip_footer_rows": 0})
        fits, count = True, 0
        while fits and count < LONE_CR_LINES and reader.gaps():
            part = reader.tokens.record(line, reader.at)
            count, fits = count + 1, len(part.cells) == width and not part.unclosed
            reader.at = part.next
        if fits and count > 1:
            raise Refused("header_mismatch")

    def read(self, width):
        """`width`: the cells per record of a file without header."""
        out, csv = self.out, self.csv
        self.skip_lines()
        if csv.get("header", True):
            out.header = self.header()
            for _ in range(csv.get("skip_rows_after_header", 0)):
                if not self.before_records():
                    break
                self.skip_record()
        more = self.gaps() if csv.get("header", True) else self.before_records()
        first = True
        while more:
            record = self.tokens.record(self.text, self.at)
            too_long = self.too_long(record)
            if first and not csv.get("header", True):
                if too_long:
                    # Only the first bytes, up to a record's limit, are examined.
                    head = self.text[record.start:]
                    self.check_first(Record(record.start, record.start + self.cut(head), 0, [], False, False), width)
                else:
                    self.check_first(record, width)
                    out.first_width, first = len(record.cells), False
            reason = None
            if record.end == record.start and self.tokens.blank(self.text, record.start) is not None:
                reason = {"null": "null", "reject": "blank_line"}[self.tokens.blank_lines]
            elif record.unclosed:
                reason = "unclosed_quote"
            elif too_long:
                reason = "record_too_long"
            out.records.append((record, reason))
            self.take("record", record.next)
            more = self.gaps()
        self.footer()
        self.check_spans()
        return out

    def cut(self, head):
        return len(head.encode("utf-8", "surrogateescape")[:self.limit].decode("utf-8", "surrogateescape"))

    def is_footer(self, record):
        values = self.csv.get("footer_values")
        if values is None:
            return True
        if self.too_long(record):
            return False
        first = next((cell.strip(ASCII_WHITE) for cell, _ in record.cells if cell.strip(ASCII_WHITE)), None)
        if first is None:
            return True
        for value in (value.strip(ASCII_WHITE).lower() for value in values):
            if first.lower().startswith(value[:-1]) if value.endswith("*") else first.lower() == value:
                return True
        return False

    def footer(self):
        records = self.out.records
        count = self.csv.get("skip_footer_rows", 0)
        if not count or not records or records[-1][0].unclosed:
            return
        begin = len(records)
        while begin > max(0, len(records) - count) and self.is_footer(records[begin - 1][0]):
            begin -= 1
        kept, cut = records[:begin], records[begin:]
        rejected = [entry for entry in cut if self.too_long(entry[0])]
        self.out.records = kept + rejected
        gone = {record.start for record, _ in cut} - {record.start for record, _ in rejected}
        self.out.spans = [("footer" if kind == "record" and start in gone else kind, start, end)
                          for kind, start, end in self.out.spans]

    def check_spans(self):
        """The accounting law by bytes: each belongs to a header, a skipped part, or a record."""
        at = 0
        for kind, start, end in self.out.spans:
            assert start == at and end > start, (kind, start, end, at)
            at = end
        assert at == len(self.text), (at, len(self.text))
        counted = [start for kind, start, _ in self.out.spans if kind == "record"]
        assert counted == [record.start for record, _ in self.out.records], "each record is counted once"

"""The expected result of a run: rows, rejected rows with their positions, and counts."""

from dataclasses import dataclass, field

import cells
import records

VALUE_BYTES_MAX = 4_096
RAW_BYTES_MAX = 65_536


@dataclass
class Counts:
    rows_read: int = 0
    rows_written: int = 0
    rows_rejected: int = 0
    rows_filtered: int = 0
    blank_lines: int = 0


@dataclass
class Expected:
    rows: list = field(default_factory=list)
    # (source, line, byte offset, column, value, reason, raw, bytes in hexadecimal or None)
    rejects: list = field(default_factory=list)
    # By source.
    counts: dict = field(default_factory=dict)
    # The error codes with which the run may fail: one for each file that fails it.
    fails: set = field(default_factory=set)


def width_without_header(mapping):
    positions = [source for source in sources(mapping) if source is not None]
    return mapping.get("csv", {}).get("width") or max(positions) + 1


def sources(mapping):
    """Where each column comes from: names, or without a header a position."""
    header = mapping.get("csv", {}).get("header", True)
    for at, column in enumerate(mapping["columns"]):
        source = column.get("from", column["name"] if header else at)
        yield [source] if isinstance(source, str) else source


def places(mapping, header, first_width):
    """(position of each column, None if it is missing; cells of a record)"""
    missing = mapping.get("missing_columns", "fail")
    if header is None:
        width = width_without_header(mapping)
        if missing == "null" and first_width:
            width = min(width, first_width)
        found = [source if source < width else None for source in sources(mapping)]
        if mapping.get("extra_columns") == "fail" and first_width and len(set(found) - {None}) < width:
            raise records.Refused("header_mismatch")
        return found, width
    names = [name.lower() for name in header]
    found, used = [], set()
    for aliases in sources(mapping):
        alias = next((alias.lower() for alias in aliases if alias.lower() in names), None)
        if alias is None:
            if missing == "fail":
                raise records.Refused("header_mismatch")
            found.append(None)
            continue
        if names.count(alias) > 1 and mapping.get("duplicate_columns", "fail") == "fail":
            raise records.Refused("header_mismatch")
        used.update(at for at, name in enumerate(names) if name == alias)
        found.append(names.index(alias))
    if missing == "null" and set(found) == {None}:
        raise records.Refused("header_mismatch")
    if mapping.get("extra_columns") == "fail" and len(used) < len(names):
        raise records.Refused("header_mismatch")
    return found, len(names)


def shown(text, bytes_max):
    """(the text as rejects show it, its bytes in hexadecimal if they are not UTF-8)"""
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > bytes_max:
        at = bytes_max - 3
        while at and data[at] & 0xC0 == 0x80 and bytes_max - 3 - at < 3:
            at -= 1
        data, cut = data[:at], True
    else:
        cut = False
    out = data.decode("utf-8", "replace")
    raw_hex = data.hex() if out.encode() != data else None
    if cut or len(out.encode()) > bytes_max:
        whole = out.encode()
        at = min(bytes_max - 3, len(whole))
        while at < len(whole) and whole[at] & 0xC0 == 0x80:
            at -= 1
        out = whole[:at].decode() + "…"
    return out, raw_hex


class Table:
    def __init__(self, mapping):
        self.mapping, self.csv = mapping, mapping.get("csv", {})
        self.columns = [cells.Column(column, self.csv) for column in mapping["columns"]]
        self.out = Expected()

    def add(self, name, data):
        """Takes in a file; raises `records.Refused` if it fails the run."""
        source = records.decode(data, self.csv.get("encoding", "utf-8"))
        width = None if self.csv.get("header", True) else width_without_header(self.mapping)
        reading = records.Reader(source, self.csv).read(width)
        found, width = places(self.mapping, reading.header, reading.first_width)
        counts = self.out.counts[name] = Counts(blank_lines=reading.blank_lines)
        line, counted_to = 1, 0
        newline = "\r" if self.csv.get("record_terminator") == "cr" else "\n"
        for record, reason in reading.records:
            line += source.text.count(newline, counted_to, record.start)
            counted_to = record.start
            column = value = None
            counts.rows_read += 1
            if reason in (None, "null"):
                verdict = self.row(source, record, reason, found, width)
                if isinstance(verdict, list):
                    self.out.rows.append(verdict)
                    counts.rows_written += 1
                    continue
                reason, column, value = verdict
            counts.rows_rejected += 1
            raw, raw_hex = shown(source.text[record.start:record.end], RAW_BYTES_MAX)
            start, length = source.offsets[record.start], source.offsets[record.next] - source.offsets[record.start]
            self.out.rejects.append((name, line, start, column, value, reason, raw, raw_hex, length))

    def row(self, source, record, reason, found, width):
        """The values of a record, or (reason, column, value) of the reject that it is."""
        ragged = self.csv.get("ragged_rows", "reject")
        content = [] if reason == "null" else record.cells
        if reason is None:
            if record.stray and self.csv.get("quotes", "strict") == "strict":
                return "stray_quote", None, None
            if len(content) != width and ragged != "pad":
                if ragged == "fail":
                    raise records.Refused("row_failed")
                return "ragged_row", None, None
            if source.is_invalid(record.start, record.end):
                return "invalid_encoding", None, None
        values = []
        for column, at in zip(self.columns, found):
            cell = content[at] if at is not None and at < min(len(content), width) else None
            try:
                values.append(column.read(cell))
            except cells.Bad as bad:
                if column.on_error == "fail":
                    raise records.Refused("row_failed") from None
                value = None if cell is None else shown(cell[0], VALUE_BYTES_MAX)[0]
                return str(bad), column.column["name"], value
        return values


def expect(mapping, files):
    """`files`: bytes by name, decompressed."""
    table = Table(mapping)
    for name in sorted(files):
        try:
            table.add(name, files[name])
        except records.Refused as refused:
            table.out.fails.add(str(refused))
    return table.out

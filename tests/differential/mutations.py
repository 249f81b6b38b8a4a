"""Proves that the comparison notices faults: mutations.py --binary LAKEMILL

Each fault is one that a program could have. It is injected into the oracle or into the program's output, since the
comparison is symmetric. Exit status 1 if a fault is not noticed.
"""

import argparse
import contextlib
import copy
import sys

import cells
import compare
import fuzz
import moments
import program
import records
import table

CASES = 400


@contextlib.contextmanager
def replaced(where, name, value):
    before = getattr(where, name)
    setattr(where, name, value(before))
    try:
        yield
    finally:
        setattr(where, name, before)


def of_option(option, value):
    """The oracle doesn't know an option of the dialect."""
    def without(before):
        def expect(mapping, files):
            csv = {name: v for name, v in mapping.get("csv", {}).items() if name != option}
            return before({**mapping, "csv": csv if value is None else {**csv, option: value}}, files)
        return expect
    return lambda: replaced(table, "expect", without)


def on_result(change):
    """Injects a fault into the expected result; equivalent to the same fault in the program's output."""
    def after(before):
        def expect(mapping, files):
            out = before(mapping, files)
            change(out)
            return out
        return expect
    return lambda: replaced(table, "expect", after)


def reject(at, value):
    def change(out):
        if out.rejects:
            last = list(out.rejects[-1])
            last[at] = value(last[at])
            out.rejects[-1] = tuple(last)
    return on_result(change)


def first_count(name):
    def change(out):
        for counts in list(out.counts.values())[:1]:
            setattr(counts, name, getattr(counts, name) + 1)
    return on_result(change)


def text_of(where, name, change):
    return lambda: replaced(where, name, lambda before: lambda *given: change(before, *given))


def sloppy_digits(before, item):
    """Adjacent fields take all available digits."""
    return False



def first_of_two(before, zone, local):
    found = before(zone, local)
    return {min(found)} if len(found) > 1 else found


def skipped_are_taken(before, zone, local):
    return before(zone, local) or {local}


def unclosed_footer(before, self):
    """A footer is cut off although the file ends within quotes: the rows in it are lost."""
    records_now, count = self.out.records, self.csv.get("skip_footer_rows", 0)
    if count and records_now and records_now[-1][0].unclosed:
        self.out.records = records_now[:-count]
        kept = {record.start for record, _ in self.out.records}
        self.out.spans = [("footer" if kind == "record" and start not in kept else kind, start, end) for kind, start, end in self.out.spans]
    else:
        before(self)


def skipped_record(before, self):
    """A record with an unclosed quote is skipped like any other."""
    record = self.tokens.record(self.text, self.at)
    self.take("skipped", record.next)


def whole_lines(before, self, text, start):
    """A CR before LF is kept as text."""
    record = before(self, text, start)
    if self.crlf and text.startswith("\r\n", record.end) and not record.cells[-1][1]:
        last = (record.cells[-1][0] + "\r", False)
        return records.Record(record.start, record.end, record.next, record.cells[:-1] + [last], record.stray, record.unclosed)
    return record



def truncated(before, value, kind):
    bits, low, _, _ = cells.FLOATS[kind]
    found = before(value, kind)
    if found is None:
        return None
    significand, exponent = found
    return (significand - 1, exponent) if significand * cells.Fraction(2) ** exponent > value else found


def saturating(before, text, csv):
    """A value out of range is clamped."""
    try:
        return before(text, csv)
    except cells.Bad as bad:
        if str(bad) == "out_of_range":
            return 0
        raise


def on_parser(kinds, change):
    def parser(before):
        def make(column):
            parse = before(column)
            if not column["type"].startswith(kinds):
                return parse
            return lambda text, csv: change(parse, text, csv)
        return make
    return lambda: replaced(cells, "parser", parser)


def rounded(parse, text, csv):
    """Excess precision is truncated."""
    while True:
        try:
            return parse(text, csv)
        except cells.Bad:
            if csv.get("decimal", ".") not in text or not text[-1:].isdigit():
                raise
            text = text[:-1]


def century(before, self):
    """Two-digit years are in this century."""
    if "year2" in self.found and "year" not in self.found:
        self.found["year"] = 2000 + self.found["year2"]
        del self.found["year2"]
    return before(self)


def nanoseconds(before, digits):
    """`%f` counts nanoseconds."""
    return int(digits) // 1000 if len(digits) < 9 else before(digits)


FAULTS = {
    "dialects": {
        "blank lines are skipped": of_option("blank_lines", None),
        "quotes in cells are text": of_option("quotes", "lenient"),
        "no escape": of_option("escape", None),
        "no comments": of_option("comment", None),
        "no footer": of_option("skip_footer_rows", None),
        "every last record is a footer": of_option("footer_values", None),
        "short rows are padded": of_option("ragged_rows", "pad"),
        "an empty cell is always null": of_option("null_values", None),
        "quoted cells are never null": of_option("quoted_nulls", None),
        "nothing is trimmed": of_option("trim", None),
        "records are as long as they like": of_option("record_bytes_max", None),
        "no records after the header are skipped": of_option("skip_rows_after_header", None),
        "rows before a footer are lost in open quotes": text_of(records.Reader, "footer", unclosed_footer),
        "rows are lost in open quotes of a skipped record": text_of(records.Reader, "skip_record", skipped_record),
        "a CR before the LF is text": text_of(records.Tokeniser, "record", whole_lines),
        "invalid bytes are taken": text_of(records.Text, "is_invalid", lambda *_: False),
        "the last row is lost": on_result(lambda out: out.rows and out.rows.pop()),
        "the last row is there twice": on_result(lambda out: out.rows and out.rows.append(out.rows[-1])),
        "two rows are swapped": on_result(lambda out: out.rows and out.rows.insert(0, out.rows.pop())),
        "null and empty are the same": on_result(lambda out: [row.__setitem__(n, row[n] or None) for row in out.rows for n in range(len(row))]),
        "a reject is lost": on_result(lambda out: out.rejects and out.rejects.pop()),
        "the line of a reject is the next": reject(1, lambda line: line + 1),
        "the byte of a reject is the next": reject(2, lambda at: at + 1),
        "the column of a reject is lost": reject(3, lambda column: None),
        "the reason of a reject is another": reject(5, lambda reason: "ragged_row"),
        "the text of a reject is cut": reject(6, lambda raw: raw[:-1]),
        "the bytes of a reject are one more": reject(8, lambda length: length + 1),
        "a blank line is not counted": first_count("blank_lines"),
        "a row that is read is not counted": first_count("rows_read"),
    },
    "types": {
        "thousands separators stand anywhere": text_of(cells, "number", lambda before, text, csv: before(text.replace(csv.get("thousands") or "\0", ""), csv)),
        "what is out of range is 0": on_parser(("int", "uint"), saturating),
        "decimals are cut": on_parser(("decimal",), rounded),
        "floats are cut, not rounded": text_of(cells, "nearest", truncated),
        "too large floats are infinite": on_parser(("float",), lambda parse, text, csv: parse(text, csv) if "e" not in text.lower() or "inf" in text.lower() else saturating(parse, text, csv)),
        "NaN is null": on_parser(("float",), lambda parse, text, csv: None if "nan" in text.lower() else parse(text, csv)),
        "booleans have any case": on_parser(("boolean",), lambda parse, text, csv: parse(text.lower(), csv)),
        "braces around UUIDs are dropped": on_parser(("uuid",), lambda parse, text, csv: parse(text.strip("{}"), csv)),
        "JSON takes NaN": text_of(cells, "refuse_constant", lambda *_: 0),
        "JSON nests without end": text_of(cells, "depth", lambda *_: 0),
        "times are cut to microseconds": text_of(moments, "micros", lambda before, digits: int(digits[:6].ljust(6, "0"))),
        "years are from 1970 on": on_parser(("date",), lambda parse, text, csv: abs(parse(text, csv))),
        "offsets are ignored": text_of(moments, "offset", lambda before, text: before(text) and 0),
    },
    "formats": {
        "fields of digits have no width": text_of(moments, "digits_begin", sloppy_digits),
        "a year of two digits is of this century": text_of(moments.Pattern, "date", century),
        "a fraction counts nanoseconds": text_of(moments, "micros", nanoseconds),
        "the first of two local times is taken": text_of(moments, "in_zone", first_of_two),
        "skipped local times are taken": text_of(moments, "in_zone", skipped_are_taken),
        "zones are ignored": text_of(moments, "in_zone", lambda before, zone, local: {local}),
    },
}


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    words.add_argument("--binary", required=True)
    runner = program.Program(words.parse_args().binary)
    missed = []
    for fuzzer, faults in FAULTS.items():
        cases, expected = fuzz.batch(fuzzer, range(CASES))
        good = [case for case, e in zip(cases, expected) if not e.fails]
        made = runner.run(good, program.Made)
        wrong = [text for case, one in zip(good, made) for text in compare.differences(one, case.expect())]
        if wrong:
            print(f"{fuzzer}: differs without any fault: {wrong[0]}")
            return 1
        for fault, put in faults.items():
            with put():
                noticed = 0
                for case, one in zip(good, made):
                    noticed += bool(compare.differences(copy.copy(one), noticing(case)))
            print(f"{fuzzer}: {fault}: noticed in {noticed} of {len(good)} cases")
            if not noticed:
                missed.append(fault)
    for fault in missed:
        print(f"NOT NOTICED: {fault}")
    return 1 if missed else 0


def noticing(case):
    """The result of the faulty oracle, whose accounting check may itself notice the fault."""
    try:
        return case.expect()
    except (AssertionError, IndexError) as error:
        return table.Expected(rejects=[("the oracle's law", repr(error))])


if __name__ == "__main__":
    sys.exit(main())

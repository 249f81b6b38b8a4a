"""Makes a failing case smaller: fewer files, lines, columns and options, as long as it fails."""

import copy
import time

import program

TRIES_MAX = 400
SECONDS_MAX = 40


def smaller(case):
    """Cases that are a little smaller, the much smaller ones first."""
    mapping, files = case.mapping, case.files
    for name in files:
        if len(files) > 1:
            yield mapping, {other: data for other, data in files.items() if other != name}
    for name, data in files.items():
        pieces = data.splitlines(keepends=True)
        size = len(pieces) // 2
        while size >= 1:
            for at in range(0, len(pieces), size):
                yield mapping, {**files, name: b"".join(pieces[:at] + pieces[at + size:])}
            size //= 2
    for option in mapping.get("csv", {}):
        yield {**mapping, "csv": {key: value for key, value in mapping["csv"].items() if key != option}}, files
    for key in mapping:
        if key not in ("columns",):
            yield {other: value for other, value in mapping.items() if other != key}, files
    columns = mapping["columns"]
    for at, column in enumerate(columns):
        if len(columns) > 1:
            yield {**mapping, "columns": columns[:at] + columns[at + 1:]}, files
        for key in column:
            if key not in ("name", "type"):
                fewer = {other: value for other, value in column.items() if other != key}
                yield {**mapping, "columns": columns[:at] + [fewer] + columns[at + 1:]}, files
        for n, pattern in enumerate(column.get("formats", [])):
            if len(column["formats"]) > 1:
                fewer = {**column, "formats": column["formats"][:n] + column["formats"][n + 1:]}
                yield {**mapping, "columns": columns[:at] + [fewer] + columns[at + 1:]}, files
    for name, data in files.items():
        if len(data) <= 400:
            for at in range(len(data)):
                yield mapping, {**files, name: data[:at] + data[at + 1:]}


def shrink(case, wrong, fails):
    """The smallest case found, and its differences. `fails(case)` gives the differences of a case."""
    tries, again, began = 0, True, time.monotonic()
    while again:
        again = False
        for mapping, files in smaller(case):
            tries += 1
            if tries > TRIES_MAX or time.monotonic() - began > SECONDS_MAX:
                return case, wrong
            less = program.Case(copy.deepcopy(mapping), files, case.label)
            found = fails(less)
            if found:
                case, wrong, again = less, found, True
                break
    return case, wrong

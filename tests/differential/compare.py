"""Compares the program's output with the oracle's."""

import program

SHOWN = 3


def first_difference(what, found, expected):
    for at, (one, other) in enumerate(zip(found, expected)):
        if one != other:
            return f"{what} {at}: found {one!r}, expected {other!r}"
    return f"{len(found)} {what}s, expected {len(expected)}; the first that only one has: {(found + expected)[min(len(found), len(expected)):][:1]!r}"


def differences(made, expected):
    """The differences, each as a text."""
    wrong = list(made.wrong)
    if wrong:
        return wrong
    # Values of different types are unequal: 1 is not True.
    if [[(type(v), v) for v in row] for row in made.rows] != [[(type(v), v) for v in row] for row in expected.rows]:
        wrong.append(first_difference("row", made.rows, expected.rows))
    if made.rejects != expected.rejects:
        wrong.append(first_difference("reject", made.rejects, expected.rejects))
    if made.counts != expected.counts:
        wrong.append(f"counts: found {made.counts}, expected {expected.counts}")
    totals = (len(expected.rows), len(expected.rejects))
    if made.table_counts != totals:
        wrong.append(f"counts of the table: found {made.table_counts}, expected {totals}")
    return [text[:4_000] for text in wrong]


def check(runner, cases, expected, **options):
    """The differences of each case, [] where there are none. A failing run is bisected."""
    def read(n, case, output, record):
        try:
            return differences(program.Made(n, case, output, record), wanted[id(case)])
        except (OSError, ValueError, KeyError) as error:
            return [f"the table can't be read: {error!r}"]

    def go(some):
        try:
            return runner.run(some, read, **options)
        except program.Failed as failed:
            if len(some) == 1:
                return [[f"the run failed: {failed}"]]
            middle = len(some) // 2
            return go(some[:middle]) + go(some[middle:])

    wanted = {id(case): e for case, e in zip(cases, expected)}
    good = [case for case, e in zip(cases, expected) if not e.fails]
    found = {id(case): wrong for case, wrong in zip(good, go(good) if good else [])}
    return [refused(runner, case, e.fails, options) if e.fails else found[id(case)] for case, e in zip(cases, expected)]


def refused(runner, case, codes, options):
    try:
        runner.run([case], lambda *_: None, **options)
    except program.Failed as failed:
        return [] if any(f"({code})" in str(failed) for code in codes) else [f"expected to fail as {codes}, found: {failed}"]
    return [f"the run completed, expected to fail as {codes}"]

"""Compares the program with an oracle on random configs and files: fuzz.py FUZZER --binary LAKEMILL

Each seed is one case. A case that differs is made smaller and kept in a folder, which is printed with its seed.
Exit status 1 if any differs.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import time

import chunks
import compare
import dialects
import formats
import kinds
import program
import shrink

FUZZERS = {"dialects": dialects.case, "types": kinds.case, "formats": formats.case, "chunks": chunks.case}
# Tables per run: one process for each case would dominate the time.
BATCH = 80
# Fixing one often fixes all.
FAILURES_MAX = 5


def rng(fuzzer, seed):
    return random.Random(f"{fuzzer} {seed}")


def batch(fuzzer, seeds):
    cases = [FUZZERS[fuzzer](rng(fuzzer, seed)) for seed in seeds]
    return cases, [case.expect() for case in cases]


def bytes_of(n, case, output, record):
    """The output that must not depend on settings: the bytes of a table, and its rejects without the job's id."""
    made = program.Made(n, case, output, record)
    return [file.read_bytes() for file in made.files], made.rejects


def check(fuzzer, runner, cases, expected, choices):
    """The differences of each case. `choices` draws the settings of the runs."""
    if fuzzer != "chunks":
        return compare.check(runner, cases, expected)
    wrong = [[] for _ in cases]
    for label in ("", chunks.LARGE):
        some = [at for at, case in enumerate(cases) if case.label == label]
        first, second = chunks.settings(choices, label), chunks.settings(choices, label)
        if some:
            found = same_bytes(runner, [cases[at] for at in some], [expected[at] for at in some], first, second)
            for at, texts in zip(some, found):
                wrong[at] = texts
    return wrong


def same_bytes(runner, cases, expected, first, second):
    """The differences of each case by `first`, and between `first` and `second`."""
    wrong = compare.check(runner, cases, expected, **first)
    good = [at for at, e in enumerate(expected) if not e.fails and not wrong[at]]
    if not good:
        return wrong
    try:
        one = runner.run([cases[at] for at in good], bytes_of, **first)
        two = runner.run([cases[at] for at in good], bytes_of, **second)
    except program.Failed as failed:
        return [[f"the run failed by {first} or {second}: {failed}"]] if len(cases) == 1 else [
            same_bytes(runner, [case], [e], first, second)[0] for case, e in zip(cases, expected)]
    for at, a, b in zip(good, one, two):
        if a != b:
            wrong[at] = [f"other bytes by {first} than by {second}"]
    return [[f"{text} ({first})" for text in texts] for texts in wrong]


def keep(fuzzer, seed, case, wrong, folder):
    place = pathlib.Path(folder) / f"{fuzzer}-{seed}"
    number = 1
    while place.exists():
        number += 1
        place = pathlib.Path(folder) / f"{fuzzer}-{seed}-{number}"
    place.mkdir(parents=True)
    program.lay_out([case], place)
    (place / "differences.txt").write_text("\n".join(wrong) + "\n", encoding="utf-8")
    return place


def fuzz(fuzzer, runner, seeds, seconds, folder):
    """(cases, failures)"""
    began, done, failures, empty = time.monotonic(), 0, 0, 0
    while (seconds is None or time.monotonic() - began < seconds) and failures < FAILURES_MAX:
        now = [seed for _, seed in zip(range(BATCH), seeds)]
        if not now:
            break
        cases, expected = batch(fuzzer, now)
        found = check(fuzzer, runner, cases, expected, rng("settings", now[0]))
        done += len(cases)
        empty += sum(not e.rows and not e.rejects for e in expected)
        for seed, case, wrong in zip(now, cases, found):
            if not wrong or failures >= FAILURES_MAX:
                continue
            failures += 1

            def fails(less):
                try:
                    expected = less.expect()
                except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                    # The shrunk config is invalid.
                    return []
                again = check(fuzzer, runner, [less], [expected], rng("settings", now[0]))[0]
                return again if same_kind(again, wrong) else []

            less, differs = shrink.shrink(case, wrong, fails)
            place = keep(fuzzer, seed, less, differs, folder)
            print(f"{fuzzer}: seed {seed} differs; the smallest case found is {place}")
            for name, data in less.files.items():
                print(f"  {name}: {data[:300]!r}")
            print("  " + json.dumps(less.mapping, ensure_ascii=False)[:1_000])
            for text in differs:
                print(f"  {text[:1_500]}")
            sys.stdout.flush()
    seconds = time.monotonic() - began
    print(f"{fuzzer}: {done} cases, {failures} differ, {empty} without any row, {seconds:.0f} s")
    sys.stdout.flush()
    return done, failures


def same_kind(one, other):
    """A shrunk case must fail the same way: a failed run stays failed, and its config stays valid."""
    kind = lambda texts: [text.startswith(("the run failed", "the run completed", "expected to fail")) for text in texts[:1]]
    return bool(one) and kind(one) == kind(other) and not any(" problem" in text for text in one)


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    words.add_argument("fuzzer", choices=[*FUZZERS, "all"])
    words.add_argument("--binary", required=True, help="the program, best built with the feature failpoints")
    words.add_argument("--seed", type=int, help="the first seed; default: a new one")
    words.add_argument("--count", type=int, help="cases of each fuzzer")
    words.add_argument("--seconds", type=float, help="time of each fuzzer")
    words.add_argument("--keep", default="differential", help="folder of cases that differ")
    given = words.parse_args()
    if given.count is None and given.seconds is None:
        given.count = BATCH
    first = random.SystemRandom().randrange(10**9) if given.seed is None else given.seed
    print(f"the first seed is {first}")
    runner = program.Program(given.binary)
    failures = 0
    for fuzzer in FUZZERS if given.fuzzer == "all" else [given.fuzzer]:
        seeds = iter(range(first, first + given.count) if given.count else iter(lambda n=iter(range(first, sys.maxsize)): next(n), None))
        failures += fuzz(fuzzer, runner, seeds, given.seconds, given.keep)[1]
    return 1 if failures else 0


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    sys.exit(main())

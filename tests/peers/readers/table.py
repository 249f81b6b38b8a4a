"""The readers' table: table.py FOLDER BINARY [--check PAGE] [--types] READER=PYTHON[:PYTHONPATH]…

Writes every kind of value and partition (values.py, partitions.py) by the program BINARY into FOLDER, has each reader
read it in a process of its own, and prints the tables as Markdown, with the first differences below. With --check the
cells must be those of PAGE: exit status 1, with every difference on a line, if any is not. With --types there are no
partitions.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import natural
import partitions
import values

HERE = pathlib.Path(__file__).parent
SECONDS_MAX = 3_600
PARTITION_ROW = "partition by string"
# Commands that print a reader's version.
VERSIONS = {
    "DuckDB": "import duckdb; print(duckdb.__version__)", "Polars": "import polars; print(polars.__version__)",
    "pyarrow": "import pyarrow; print(pyarrow.__version__)", "fastparquet": "import fastparquet; print(fastparquet.__version__)",
    "ClickHouse": "import chdb; print(chdb.query('SELECT version()').bytes().decode().strip().strip('\"'))",
    "Spark": "import pyspark; print(pyspark.__version__)",
}


class Peer:
    """A reader with the interpreter that has it."""

    def __init__(self, text):
        self.family, _, rest = text.partition("=")
        self.python, _, path = rest.partition(":")
        self.env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **({"PYTHONPATH": path} if path else {}))
        found = self.run("-c", VERSIONS[self.family])
        self.name = f"{self.family} {found.stdout.split()[-1]}"

    def run(self, *arguments):
        return subprocess.run([self.python, *map(str, arguments)], env=self.env, text=True, timeout=SECONDS_MAX,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def verdicts(self, warehouse):
        """{label: verdict}; a verdict has neither `type` nor `refused` if the process died."""
        found, left = {}, [kind.label for kind in values.distinct(warehouse)]
        while left:
            ran = self.run(HERE / "compare.py", self.family, warehouse, *left)
            lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"label"')]
            assert lines, f"{self.name} read nothing: {ran.stderr[-2000:]}"
            found |= {line["label"]: line for line in lines}
            left = [label for label in left if label not in found]
        return found

    def partitions(self, folder):
        ran = self.run(HERE / "partitions.py", folder, self.family)
        lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"label"')]
        assert len(lines) == len(partitions.VALUES), f"{self.name}: {ran.stderr[-2000:]}"
        return {line["label"]: line for line in lines}


def write(folder, binary, script):
    """Creates a lake and its config with a script, and its warehouse with Lakemill."""
    folder.mkdir(parents=True)
    subprocess.run([sys.executable, HERE / script, folder], check=True, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
    command = [binary, "run", folder / "pipeline.json", "--input", folder / "lake", "--output", folder / "warehouse"]
    ran = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert ran.returncode == 0, ran.stdout[-4000:]


def partition_word(found):
    """The verdict on texts that look like no other type and not like a null."""
    special = {*partitions.GUESSED, "__HIVE_DEFAULT_PARTITION__"}
    told = [line["declared"] or line["inferred"] for line in found.values()
            if not line.get("rejected") and line["label"].strip("`") not in special]
    words = set(told) - {"ok"}
    return "**wrong**" if words - {"refuses"} else "refuses" if words else "ok"


def partition_cell(line, guess):
    if line.get("rejected"):
        return "not written"
    return line["inferred"] if guess else line["declared"] or line["inferred"]


def markdown(first, peers, rows, cell, shortened=False):
    """`shortened`: without rows that all readers read correctly."""
    if shortened:
        rows = [row for row in rows if any(cell(peer, row) != "ok" for peer in peers)]
    lines = [f"| {first} | {' | '.join(peer.name for peer in peers)} |", "|---" * (len(peers) + 1) + "|"]
    return "\n".join(lines + [f"| {row} | {' | '.join(cell(peer, row) for peer in peers)} |" for row in rows])


def cells(page):
    """{(row, reader): cell} of every table on a page."""
    found, header = {}, None
    for line in page.splitlines():
        parts = [part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]] if line.startswith("|") else None
        if parts is None:
            header = None
        elif header is None:
            header = parts
        elif not set(parts[0]) <= {"-", ":"}:
            found |= {(header[0], parts[0], name): cell for name, cell in zip(header[1:], parts[1:])}
    return found


def main(folder, binary, page, with_partitions, peers):
    write(folder / "types", binary, "values.py")
    if with_partitions:
        write(folder / "partitions", binary, "partitions.py")
    kinds = {kind.label: kind for kind in values.distinct(folder / "types" / "warehouse")}
    types, parts = {}, {}
    for peer in peers:
        print(peer.name, file=sys.stderr)
        types[peer.name] = peer.verdicts(folder / "types" / "warehouse")
        parts[peer.name] = peer.partitions(folder / "partitions") if with_partitions else {}

    def type_cell(peer, label):
        if label == PARTITION_ROW:
            return partition_word(parts[peer.name])
        return natural.word(kinds[label], types[peer.name][label])

    tables = [markdown("type", peers, [*kinds, PARTITION_ROW] if with_partitions else kinds, type_cell)]
    if with_partitions:
        for first, guess in (("partition", False), ("guessed partition", True)):
            labels = [label for label, text in partitions.VALUES if (text in partitions.GUESSED) == guess]
            cell = lambda peer, label, guess=guess: partition_cell(parts[peer.name][label], guess)
            tables.append(markdown(first, peers, labels, cell, shortened=True))
    text = "\n\n".join(tables)
    print(text)
    for peer in peers:
        for label, verdict in types[peer.name].items():
            told = [verdict[what] for what in ("refused", "differs", "miscounts", "unfiltered") if what in verdict]
            if told:
                print(f"- {peer.name}, {label}: {' · '.join(told)[:400]}")
    if page:
        on_page = cells(page.read_text())
        # The page's partition table has only the newest versions, one column for Spark, and no rows that all readers
        # read correctly.
        shown = {(first, name) for first, _, name in on_page} | {("type", peer.name) for peer in peers}
        spark = {first: name for first, _, name in on_page if name.startswith("Spark ") and first != "type"}
        differences = []
        for (first, row, name), cell in cells(text).items():
            there = spark.get(first, name) if name.startswith("Spark ") else name
            told = on_page.get((first, row, there), "ok" if first != "type" else "nothing")
            if told != cell and (first, there) in shown:
                differences.append(f"{page}: {row}, {name}: the page says `{told}`, found `{cell}`")
        print("\n".join(differences))
        sys.exit(bool(differences))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    page, with_partitions = None, True
    if "--check" in arguments:
        at = arguments.index("--check")
        page = pathlib.Path(arguments[at + 1])
        del arguments[at:at + 2]
    if "--types" in arguments:
        arguments.remove("--types")
        with_partitions = False
    main(pathlib.Path(arguments[0]).resolve(), arguments[1], page, with_partitions, [Peer(text) for text in arguments[2:]])

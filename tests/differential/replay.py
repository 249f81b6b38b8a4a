"""Repeats the comparison of kept cases: replay.py FOLDER --binary LAKEMILL

Each folder in FOLDER is a case as `fuzz.py` keeps it: `pipeline.json` and `lake/`. A line for each that agrees; exit
status 1 if one differs.
"""

import argparse
import gzip
import json
import pathlib
import sys

import pyarrow as pa

import compare
import program


def decompressed(path):
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return pa.input_stream(pa.BufferReader(data), compression="zstd").read()
    return data


def load(folder):
    """The cases of a folder."""
    for mapping in json.loads((folder / "pipeline.json").read_text(encoding="utf-8"))["mappings"]:
        files = {path.name: decompressed(path) for path in sorted((folder / "lake" / mapping["table"]).iterdir())}
        kept = {key: value for key, value in mapping.items() if key not in ("table", "files", "rejects")}
        yield program.Case(kept, files, folder.name)


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--binary", required=True)
    given = words.parse_args()
    cases = [case for folder in sorted(given.folder.iterdir()) for case in load(folder)]
    wrong = compare.check(program.Program(given.binary), cases, [case.expect() for case in cases])
    for case, texts in zip(cases, wrong):
        print(f"{case.label}: {'agrees' if not texts else 'DIFFERS'}")
        for text in texts:
            print(f"  {text}")
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())

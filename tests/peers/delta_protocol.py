#!/usr/bin/env python3
"""Checks a Delta log against what PROTOCOL.md of delta-io/delta requires of writers, more strictly than readers do.

    delta_protocol.py TABLE…       prints each fault, and exits with 1 if there are any
    delta_protocol.py --self-test  checks logs of delta-rs, whole and damaged in each way that is looked for

Knows the features that Lakemill writes: no deletion vectors, no column mapping, checkpoints of one file. Doesn't ask for
tombstones in checkpoints, which only `VACUUM` uses.
"""

import collections
import datetime as dt
import decimal
import json
import pathlib
import re
import sys
import tempfile
import urllib.parse
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

VERSION = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
PRIMITIVE = re.compile(
    r"string|long|integer|short|byte|float|double|boolean|binary|date|timestamp|timestamp_ntz|decimal\((\d+),(\d+)\)"
)
REQUIRED = {
    "add": {"path": str, "partitionValues": dict, "size": int, "modificationTime": int, "dataChange": bool},
    "remove": {"path": str, "dataChange": bool},
    "metaData": {"id": str, "format": dict, "schemaString": str, "partitionColumns": list, "configuration": dict},
    "protocol": {"minReaderVersion": int, "minWriterVersion": int},
    "txn": {"appId": str, "version": int},
    "commitInfo": {"timestamp": int},
}
# Of a version; others may be repeated.
ONCE = ["metaData", "protocol", "commitInfo"]
STATS = {"numRecords", "minValues", "maxValues", "nullCount", "tightBounds"}


# Decimals have 38 digits.
decimal.getcontext().prec = 80


class Fault(Exception):
    pass


def need(holds, text):
    if not holds:
        raise Fault(text)


def is_a(value, kind):
    return isinstance(value, kind) and (kind is not int or not isinstance(value, bool))


def unique_keys(pairs):
    names = [name for name, _ in pairs]
    need(len(set(names)) == len(names), f"an object has a name twice: {names}")
    return dict(pairs)


def parsed(text):
    try:
        return json.loads(text, object_pairs_hook=unique_keys, parse_float=decimal.Decimal)
    except ValueError as error:
        raise Fault(f"not JSON: {error}") from error


def actions_of(text):
    for line in text.splitlines():
        action = parsed(line)
        need(is_a(action, dict) and len(action) == 1, f"a line isn't one action: {line[:100]}")
        (name, fields), = action.items()
        need(name in REQUIRED, f"unknown action {name}")
        need(is_a(fields, dict), f"{name} is no object")
        for field, kind in REQUIRED[name].items():
            need(is_a(fields.get(field), kind), f"{name}.{field} is {fields.get(field)!r}, expected {kind.__name__}")
        yield name, fields


class Schema:
    def __init__(self, metadata):
        schema = parsed(metadata["schemaString"])
        need(schema.get("type") == "struct", "the schema is no struct")
        self.types = {}
        for field in schema["fields"]:
            need(set(field) == {"name", "type", "nullable", "metadata"}, f"a field has {sorted(field)}")
            need(is_a(field["nullable"], bool) and field["metadata"] == {}, f"the field {field}")
            found = is_a(field["type"], str) and PRIMITIVE.fullmatch(field["type"])
            need(found, f"unknown type {field['type']}")
            if found[1]:
                need(0 <= int(found[2]) <= int(found[1]) <= 38, f"the type {field['type']}")
            self.types[field["name"]] = field["type"]
        folded = collections.Counter(name.lower() for name in (field["name"] for field in schema["fields"]))
        need(max(folded.values(), default=1) == 1, "two columns have one name, ignoring case")
        self.partitions = metadata["partitionColumns"]
        need(len(set(self.partitions)) == len(self.partitions), "a partition column is listed twice")
        need(set(self.partitions) <= set(self.types), f"partition columns {self.partitions} aren't in the schema")
        self.stored = [name for name in self.types if name not in self.partitions]
        need(self.stored, "the files have no column")


def value_of(kind, text):
    """A value as statistics and partitions have it."""
    if kind in ("long", "integer", "short", "byte"):
        bits = {"long": 64, "integer": 32, "short": 16, "byte": 8}[kind]
        number = int(text)
        need(str(number) == str(text) and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1), f"{text!r} is no {kind}")
        return number
    if kind in ("float", "double"):
        return float(text)
    if kind == "boolean":
        need(text in (True, False, "true", "false"), f"{text!r} is no boolean")
        return text in (True, "true")
    if kind == "date":
        return dt.date.fromisoformat(text)
    if kind.startswith("timestamp"):
        is_utc = str(text).endswith("Z")
        need(kind == "timestamp" or not is_utc, f"{text!r} has a zone")
        return dt.datetime.fromisoformat(str(text).removesuffix("Z")).replace(tzinfo=None)
    if kind.startswith("decimal"):
        precision, scale = map(int, PRIMITIVE.fullmatch(kind).groups())
        number = decimal.Decimal(str(text))
        need(-number.as_tuple().exponent <= scale and abs(number) < 10 ** (precision - scale), f"{text!r} is no {kind}")
        return number
    return text


def check_metadata(metadata):
    try:
        uuid.UUID(metadata["id"])
    except ValueError as error:
        raise Fault(f"metaData.id is {metadata['id']!r}") from error
    need(metadata["format"] == {"provider": "parquet", "options": {}}, f"metaData.format is {metadata['format']}")
    need(all(is_a(value, str) for value in metadata["configuration"].values()), "a setting of metaData is no text")
    return Schema(metadata)


def check_protocol(protocol, schema):
    reader, writer = protocol["minReaderVersion"], protocol["minWriterVersion"]
    need(1 <= reader <= 3 and 1 <= writer <= 7, f"protocol {protocol}")
    need(("readerFeatures" in protocol) == (reader == 3), f"protocol {protocol}")
    need(("writerFeatures" in protocol) == (writer == 7), f"protocol {protocol}")
    need(reader < 3 or writer == 7, f"protocol {protocol}")
    readers, writers = protocol.get("readerFeatures", []), protocol.get("writerFeatures", [])
    need(set(readers) <= set(writers), f"a feature of readers is none of writers: {protocol}")
    if "timestamp_ntz" in schema.types.values():
        need("timestampNtz" in readers, "timestamp_ntz needs the feature timestampNtz")


def check_path(path):
    need(path and not path.startswith("/") and "://" not in path, f"the path {path!r} isn't relative")
    need(re.fullmatch(r"(?:[\w./=~!$&'()*+,;:@-]|%[0-9A-Fa-f]{2})+", path, re.ASCII), f"the path {path!r} is no URI")
    need(".." not in path.split("/"), f"the path {path!r} leads out of the table")


def check_stats(add, schema):
    if add.get("stats") is None:
        return {}
    stats = parsed(add["stats"])
    need(set(stats) <= STATS and is_a(stats.get("numRecords"), int) and stats["numRecords"] >= 0, f"stats {add['stats']}")
    for name in ("minValues", "maxValues", "nullCount"):
        strange = set(stats.get(name, {})) - set(schema.stored)
        need(not strange, f"stats.{name} has {sorted(strange)}")
    for name, nulls in stats.get("nullCount", {}).items():
        need(is_a(nulls, int) and 0 <= nulls <= stats["numRecords"], f"stats.nullCount.{name} is {nulls}")
    return stats


def check_partition_values(add, schema):
    values = add["partitionValues"]
    need(set(values) == set(schema.partitions), f"partitionValues has {sorted(values)}, expected {schema.partitions}")
    for name, text in values.items():
        need(text is None or is_a(text, str), f"partitionValues.{name} is {text!r}")
        if text not in (None, ""):
            value_of(schema.types[name], text)


def check_file(folder, add, schema):
    path = folder / urllib.parse.unquote(add["path"])
    need(path.is_file(), f"{add['path']} doesn't exist")
    need(path.stat().st_size == add["size"], f"{add['path']} has {path.stat().st_size} bytes, expected {add['size']}")
    stats = check_stats(add, schema)
    if not stats:
        return
    table = pq.ParquetFile(path).read()
    need(set(table.column_names) <= set(schema.types), f"{add['path']} has the columns {table.column_names}")
    need(stats["numRecords"] == table.num_rows, f"{add['path']} has {table.num_rows} rows, stats {stats['numRecords']}")
    for name, nulls in stats.get("nullCount", {}).items():
        found = table[name].null_count if name in table.column_names else table.num_rows
        need(nulls == found, f"{add['path']}: {name} has {found} nulls, stats {nulls}")
    for bound in ("minValues", "maxValues"):
        for name, text in stats.get(bound, {}).items():
            limit = value_of(schema.types[name], text)
            for value in table[name].to_pylist():
                if value is None or value != value:
                    continue
                if isinstance(value, dt.datetime):
                    value = value.replace(tzinfo=None)
                need(limit <= value if bound == "minValues" else limit >= value, f"{add['path']}: {name} has {value!r} beyond {text!r}")


class State:
    """A table at a version."""

    def __init__(self):
        self.files, self.txns, self.metadata, self.protocol, self.schema = {}, {}, None, None, None

    def apply(self, text):
        actions = list(actions_of(text))
        for name in ONCE:
            need(sum(one == name for one, _ in actions) <= 1, f"{name} is there twice")
        by = lambda name: [fields for one, fields in actions if one == name]
        for metadata in by("metaData"):
            need(self.metadata is None or metadata["id"] == self.metadata["id"], "the table's id changes")
            self.metadata, self.schema = metadata, check_metadata(metadata)
        for protocol in by("protocol"):
            old = self.protocol or {"minReaderVersion": 1, "minWriterVersion": 1}
            need(all(protocol[name] >= old[name] for name in REQUIRED["protocol"]), "the protocol goes back")
            self.protocol = protocol
        need(self.metadata and self.protocol, "the first version has no metaData or no protocol")
        check_protocol(self.protocol, self.schema)
        paths = [fields["path"] for name, fields in actions if name in ("add", "remove")]
        need(len(set(paths)) == len(paths), "a file has two actions")
        for remove in by("remove"):
            need(remove["path"] in self.files, f"{remove['path']} is removed and isn't there")
            need(is_a(remove.get("deletionTimestamp", 0), int), "remove.deletionTimestamp")
            del self.files[remove["path"]]
        for add in by("add"):
            check_path(add["path"])
            need(add["size"] >= 0, "a size is negative")
            check_partition_values(add, self.schema)
            check_stats(add, self.schema)
            # What `dataChange: false` adds replaces rows that are there.
            need(add["dataChange"] or add["path"] in self.files or by("remove"), f"{add['path']} changes no data and is new")
            self.files[add["path"]] = add
        ids = [txn["appId"] for txn in by("txn")]
        need(len(set(ids)) == len(ids), "an application has two transactions")
        for txn in by("txn"):
            need(txn["version"] > self.txns.get(txn["appId"], -1), f"the transaction {txn} goes back")
            self.txns[txn["appId"]] = txn["version"]


def pairs(value):
    return dict(value) if value is not None else None


def checkpoint_state(path):
    """The actions of a checkpoint as a state, and their number."""
    rows, state = pq.read_table(path).to_pylist(), State()
    metadata, protocol = [], []
    for row in rows:
        found = [(name, fields) for name, fields in row.items() if fields is not None]
        need(len(found) == 1, f"a row has the actions {[name for name, _ in found]}")
        (name, fields), = found
        if name == "add":
            need(fields["path"] not in state.files, f"{fields['path']} is there twice")
            state.files[fields["path"]] = {**fields, "partitionValues": pairs(fields["partitionValues"])}
        elif name == "txn":
            state.txns[fields["appId"]] = fields["version"]
        elif name == "metaData":
            form = {**fields["format"], "options": pairs(fields["format"]["options"])}
            metadata.append({**fields, "format": form, "configuration": pairs(fields["configuration"])})
        elif name == "protocol":
            protocol.append({name: value for name, value in fields.items() if value is not None})
    need(len(metadata) == len(protocol) == 1, f"{len(metadata)} metaData, {len(protocol)} protocol")
    state.metadata, state.protocol = metadata[0], protocol[0]
    state.schema = check_metadata(state.metadata)
    return state, len(rows)


def stats_of(add):
    return None if add.get("stats") is None else json.loads(add["stats"])


def compare(name, found, expected):
    need(found.protocol == expected.protocol, f"{name}: protocol {found.protocol}, expected {expected.protocol}")
    for field in REQUIRED["metaData"]:
        need(found.metadata[field] == expected.metadata[field], f"{name}: metaData.{field} is {found.metadata[field]}")
    need(found.txns == expected.txns, f"{name}: transactions {found.txns}, expected {expected.txns}")
    need(set(found.files) == set(expected.files), f"{name}: files {sorted(set(found.files) ^ set(expected.files))[:3]}")
    for path, add in found.files.items():
        other = expected.files[path]
        for field in ("partitionValues", "size", "modificationTime"):
            need(add[field] == other[field], f"{name}: {path} has {field} {add[field]}, expected {other[field]}")
        need(stats_of(add) == stats_of(other), f"{name}: {path} has the stats {add.get('stats')}")


def check_last(log, checkpoints):
    path = log / "_last_checkpoint"
    need(path.exists() == bool(checkpoints), "_last_checkpoint or its checkpoint is missing")
    if not checkpoints:
        return
    last = parsed(path.read_text())
    need(is_a(last.get("version"), int) and last["version"] in checkpoints, f"_last_checkpoint names {last.get('version')}")
    file, state, rows = checkpoints[last["version"]]
    need(last.get("size") == rows, f"_last_checkpoint.size is {last.get('size')}, expected {rows}")
    need(last.get("parts") is None, "_last_checkpoint.parts")
    need(last.get("sizeInBytes") in (None, file.stat().st_size), "_last_checkpoint.sizeInBytes")
    need(last.get("numOfAddFiles") in (None, len(state.files)), "_last_checkpoint.numOfAddFiles")


def check(folder, say):
    """Reports the first fault of each checkpoint, and the first of the versions and the newest files. Returns the number of
    versions."""
    folder = pathlib.Path(folder)
    log = folder / "_delta_log"
    named = lambda pattern: {int(found[1]): path for path in log.iterdir() if (found := pattern.fullmatch(path.name))}
    versions, checkpoints, state = named(VERSION), {}, None
    for path in log.iterdir():
        if not VERSION.fullmatch(path.name) and not CHECKPOINT.fullmatch(path.name) and path.name != "_last_checkpoint":
            say(f"{path.name} is no file of a log")
    for version, path in sorted(named(CHECKPOINT).items()):
        try:
            checkpoints[version] = (path, *checkpoint_state(path))
        except (Fault, KeyError, TypeError, ValueError, pa.ArrowInvalid) as error:
            say(f"{path.name}: {error}")
    if not versions:
        say("no version")
        return 0
    first = min(versions)
    try:
        need(sorted(versions) == list(range(first, max(versions) + 1)), "versions are missing")
        if first > 0:
            # Versions before a checkpoint may be deleted.
            need(first - 1 in checkpoints or first in checkpoints, f"no checkpoint is before version {first}")
        for version in range(first, max(versions) + 1):
            if state is None and version in checkpoints and version > 0:
                state = checkpoints[version][1]
                continue
            state = state or (checkpoints[version - 1][1] if version > 0 else State())
            try:
                state.apply(versions[version].read_text(encoding="utf-8"))
                if version in checkpoints:
                    compare(checkpoints[version][0].name, checkpoints[version][1], state)
            except Fault as error:
                raise Fault(f"version {version}: {error}") from error
        check_last(log, checkpoints)
        for add in state.files.values():
            check_file(folder, add, state.schema)
    except (Fault, KeyError, TypeError, ValueError) as error:
        say(str(error))
    return len(versions)


def self_test():
    from deltalake import DeltaTable, write_deltalake

    faults = 0

    def found_in(folder):
        found = []
        check(folder, found.append)
        return found

    def made(folder):
        # Whole milliseconds: delta-rs rounds the maximum down to them.
        moment = dt.datetime(2024, 1, 31, 10, 0, 0, 123000)
        rows = {"p": ["a b", "ü", None], "n": [1, 2, None], "f": [0.5, float("nan"), -1.0], "d": [decimal.Decimal("1.50")] * 3,
                "day": [dt.date(2024, 2, 29)] * 3, "tz": [moment.replace(tzinfo=dt.timezone.utc)] * 3, "ts": [moment] * 3}
        write_deltalake(folder, pa.table(rows), partition_by=["p"])
        write_deltalake(folder, pa.table(rows), mode="append")
        DeltaTable(folder).create_checkpoint()
        DeltaTable(folder).delete("p = 'ü'")
        return pathlib.Path(folder)

    def damage(folder, version, old, new):
        path = folder / "_delta_log" / f"{version:020}.json"
        before = path.read_text()
        after = re.sub(old, new, before, count=1, flags=re.S)
        assert after != before, (old, before)
        path.write_text(after)

    with tempfile.TemporaryDirectory() as folder:
        for fault in found_in(made(folder)):
            print(f"a log of delta-rs: {fault}")
            faults += 1
    wrong = {
        "not JSON": (1, r"^\{", "["),
        "a line isn't one action": (1, r'^\{"', '{"txn":{"appId":"a","version":1},"'),
        "unknown action": (1, '"add"', '"adds"'),
        "is no URI": (1, r'"path":"p=', '"path":"p ='),
        "isn't relative": (1, r'"path":"', '"path":"/'),
        "add.size": (1, r'"size":(\d+)', r'"size":"\1"'),
        "partitionValues has": (1, r'"partitionValues":\{"p"', '"partitionValues":{"q"'),
        "stats.nullCount has": (1, r'nullCount\\":\{', r'nullCount\\":{\\"q\\":0,'),
        "a file has two actions": (1, r'(\{"add":.*?\}\n)', r"\1\1"),
        "is removed and isn't there": (2, r'("remove":\{"path":")', r"\1x"),
        "the table's id changes": (1, r"\A", '{"metaData":{"id":"00000000-0000-0000-0000-000000000000","format":{},"schemaString":"","partitionColumns":[],"configuration":{}}}\n'),
        "metaData.format": (0, '"provider":"parquet"', '"provider":"csv"'),
        "unknown type": (0, r'\\"double\\"', r'\\"duration\\"'),
        "aren't in the schema": (0, r'"partitionColumns":\["p"\]', '"partitionColumns":["q"]'),
        "needs the feature timestampNtz": (0, r'"readerFeatures":\[[^]]*\]', '"readerFeatures":[]'),
        "is there twice": (0, r'(\{"protocol":.*?\}\n)', r"\1\1"),
        "has no metaData or no protocol": (0, r'\{"protocol":.*?\}\n', ""),
        # Of the checkpoint, which is of the second version.
        "has size": (1, r'"size":\d+', '"size":1'),
        "has the stats": (1, r'numRecords\\":1', r'numRecords\\":2'),
    }
    for expected, (version, old, new) in wrong.items():
        with tempfile.TemporaryDirectory() as folder:
            damage(made(folder), version, old, new)
            found = found_in(folder)
            if not any(expected in fault for fault in found):
                print(f"a log that is damaged so that {expected!r}: {found}")
                faults += 1
    for expected, change in {
        "doesn't exist": lambda folder: next(folder.glob("p=a*/*.parquet")).unlink(),
        "versions are missing": lambda folder: (folder / "_delta_log" / f"{1:020}.json").unlink(),
        "its checkpoint is missing": lambda folder: (folder / "_delta_log" / "_last_checkpoint").unlink(),
        "_last_checkpoint.size": lambda folder: (folder / "_delta_log" / "_last_checkpoint").write_text('{"version":1,"size":1}'),
        "is no file of a log": lambda folder: (folder / "_delta_log" / "1.json").write_text(""),
    }.items():
        with tempfile.TemporaryDirectory() as folder:
            change(made(folder))
            if not any(expected in fault for fault in found_in(folder)):
                print(f"a table that is damaged so that {expected!r}: {found_in(folder)}")
                faults += 1
    return faults


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    faults = []
    for table in sys.argv[1:]:
        print(f"{table}: {check(table, faults.append)} versions", flush=True)
    print("".join(f"{fault}\n" for fault in faults), end="")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

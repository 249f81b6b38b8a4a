"""Translates a verdict of compare.py into the word in the readers' table."""

import re

# Names of types that are equivalent to ours in any reader.
NATURAL = {
    "boolean": "bool boolean", "int8": "int8 tinyint", "int16": "int16 smallint", "int32": "int32 integer int",
    "int64": "int64 bigint", "uint8": "uint8 utinyint", "uint16": "uint16 usmallint", "uint32": "uint32 uinteger",
    "uint64": "uint64 ubigint", "float32": "float32 float", "float64": "float64 double", "string": "string varchar object str",
    "date": "date date32[day] date32", "time": "time time64[us] timedelta64[us] time64(6)",
    "timestamp": "timestamp timestamp[us] datetime[us] timestamp_ntz datetime64[us] datetime64[ns] datetime64(6,utc)",
    "timestamptz": "timestamp with time zone|timestamp[us,tz=utc]|datetime[us,utc]|timestamp|datetime64[us,utc]|"
                   "datetime64[ns,utc]|datetime64(6,utc)",
    "uuid": "uuid extension<arrow.uuid>", "json": "json string varchar extension<arrow.json> object",
}


def natural(base):
    words = NATURAL.get(base, "")
    return set(words.split("|") if "|" in words else words.split())


def reader_type(text):
    """A reader's name of a type, without common parts."""
    text = re.sub(r"^Nullable\((.*)\)$", r"\1", text)
    text = re.sub(r"Datetime\(time_unit='(\w+)', time_zone=None\)", r"Datetime[\1]", text)
    text = re.sub(r"Datetime\(time_unit='(\w+)', time_zone='(\w+)'\)", r"Datetime[\1,\2]", text)
    text = re.sub(r"Decimal\(precision=(\d+), scale=(\d+)\)", r"Decimal(\1,\2)", text)
    return text.replace("'", "").replace(", ", ",")


def is_natural(kind, name):
    name = reader_type(name).lower()
    if kind.base == "decimal":
        return name in (kind.declared, kind.declared.replace("decimal", "decimal128"))
    return name in natural(kind.base)


def word(kind, verdict):
    if "refused" in verdict:
        return "refuses"
    if "type" not in verdict:
        return "crashes"
    if "differs" in verdict or "miscounts" in verdict:
        return "**wrong**"
    told = "ok" if is_natural(kind, verdict["type"]) else f"as `{reader_type(verdict['type'])}`"
    return f"{told}, no filter" if "unfiltered" in verdict else told

"""The oracle's cells: from the text of a cell to the value of a type, or to the reason why it is rejected.

Values are plain: integers for numbers, dates (days) and times (microseconds), bits for floats, bytes for UUIDs.
"""

import json
import re
import struct
from fractions import Fraction

import moments
from moments import Bad

BLANKS = " \t\n\x0c\r"
JSON_LEVELS = 128


def number(text, csv):
    """(negative, digits before the mark, digits after it or None, exponent or None)"""
    point, thousands = csv.get("decimal", "."), csv.get("thousands")
    whole = r"[0-9]*"
    if thousands:
        whole = rf"(?:[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+|[0-9]*)"
    found = re.fullmatch(rf"([+-]?)({whole})(?:{re.escape(point)}([0-9]*))?(?:[eE]([+-]?[0-9]+))?", text)
    if not found or not (found[2] or found[3]):
        raise Bad("wrong_type")
    return found[1] == "-", found[2].replace(thousands, "") if thousands else found[2], found[3], found[4]


def integer(kind):
    bits, signed = int(kind.lstrip("uint")), kind.startswith("i")
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def parse(text, csv):
        negative, whole, fraction, exponent = number(text, csv)
        if fraction is not None or exponent is not None:
            raise Bad("wrong_type")
        value = -int(whole) if negative else int(whole)
        if not low <= value <= high:
            raise Bad("out_of_range")
        return value

    return parse


def decimal(kind):
    precision, scale = map(int, re.findall(r"\d+", kind))

    def parse(text, csv):
        negative, whole, fraction, exponent = number(text, csv)
        fraction = (fraction or "").rstrip("0")
        if exponent is not None or len(fraction) > scale:
            raise Bad("wrong_type")
        value = int((whole + fraction or "0") + "0" * (scale - len(fraction)))
        if value >= 10**precision:
            raise Bad("out_of_range")
        return -value if negative else value

    return parse


# Bits of the significand, least exponent, greatest exponent, and struct's letter.
FLOATS = {"float32": (24, -149, 127, "f"), "float64": (53, -1074, 1023, "d")}


def nearest(value, kind):
    """The nearest float to a positive fraction, ties to even, as (significand, exponent); None if it is too large."""
    bits, low, high, _ = FLOATS[kind]
    exponent = value.numerator.bit_length() - value.denominator.bit_length() - bits
    exponent = max(exponent, low)
    while True:
        shifted = value / Fraction(2) ** exponent
        if shifted >= 1 << bits:
            exponent += 1
        elif shifted < 1 << bits - 1 and exponent > low:
            exponent -= 1
        else:
            break
    significand, rest = divmod(shifted.numerator, shifted.denominator)
    twice = 2 * rest
    if twice > shifted.denominator or (twice == shifted.denominator and significand % 2):
        significand += 1
    if significand.bit_length() + exponent - 1 > high:
        return None
    return significand, exponent


def floating(kind):
    letter = FLOATS[kind][3]

    def parse(text, csv):
        word = re.fullmatch(r"([+-]?)(nan|inf|infinity)", text, re.I | re.A)
        if word:
            value = float(word[2]) * (-1 if word[1] == "-" else 1)
            return "nan" if value != value else struct.pack(letter, value)
        negative, whole, fraction, exponent = number(text, csv)
        digits, power = int((whole + (fraction or "")) or "0"), int(exponent or 0) - len(fraction or "")
        magnitude = len(str(digits)) + power
        if digits == 0 or magnitude < -400:
            value = 0.0
        elif magnitude > 400:
            raise Bad("out_of_range")
        else:
            found = nearest(digits * Fraction(10) ** power, kind)
            if found is None:
                raise Bad("out_of_range")
            significand, exponent = found
            value = float(significand * Fraction(2) ** exponent)
        return struct.pack(letter, -value if negative else value)

    return parse


def boolean(text, csv):
    if text in csv.get("true_values", ["true"]):
        return True
    if text in csv.get("false_values", ["false"]):
        return False
    raise Bad("wrong_type")


def uuid(text, _):
    hexadecimal = r"[0-9a-fA-F]"
    if not re.fullmatch(rf"{hexadecimal}{{32}}|{hexadecimal}{{8}}(-{hexadecimal}{{4}}){{3}}-{hexadecimal}{{12}}", text):
        raise Bad("wrong_type")
    return bytes.fromhex(text.replace("-", ""))


def depth(text):
    level = deepest = 0
    for token in re.findall(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', text, re.S):
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token, 0)
        deepest = max(deepest, level)
    return deepest


def refuse_constant(_):
    raise ValueError


def valid_json(text, _):
    try:
        if depth(text) > JSON_LEVELS:
            raise Bad("wrong_type")
        json.loads(text, parse_constant=refuse_constant, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        raise Bad("wrong_type") from None
    return text


def parser(column):
    kind = column["type"]
    if kind == "string":
        return lambda text, _: text
    if re.fullmatch(r"u?int\d+", kind):
        return integer(kind)
    if kind.startswith("decimal"):
        return decimal(kind)
    if kind in FLOATS:
        return floating(kind)
    if kind in ("date", "time", "timestamp", "timestamptz"):
        return moments.parser(column)
    return {"boolean": boolean, "uuid": uuid, "json": valid_json}[kind]


class Column:
    """Reads the cells of a column."""

    def __init__(self, column, csv):
        self.parse, self.csv, self.column = parser(column), csv, column
        self.nulls = frozenset(csv.get("null_values", [""]))
        self.quoted_nulls, self.trim = csv.get("quoted_nulls", False), csv.get("trim", False)
        self.nullable, self.on_error = column.get("nullable", True), column.get("on_error", "reject")

    def read(self, cell):
        """The value of a cell, (text, quoted) or None where the record has none.

        Raises Bad with the reason of a reject."""
        value = None
        if cell is not None:
            text, quoted = cell
            if self.trim and not quoted:
                text = text.strip(BLANKS)
            if (quoted and not self.quoted_nulls) or text not in self.nulls:
                try:
                    return self.parse(text, self.csv)
                except Bad:
                    if self.on_error != "null":
                        raise
        if value is None and not self.nullable:
            raise Bad("null_not_allowed")
        return value

"""Random columns of every type, and cells at the limits of the types."""

import program

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
OTHERS = ["float32", "float64", "boolean", "string", "date", "time", "timestamp", "timestamptz", "uuid", "json"]


def mark(rng, digits, csv):
    """Digits with thousands separators, mostly well placed."""
    thousands = csv.get("thousands")
    if not thousands or rng.random() < 0.4:
        return digits
    if rng.random() < 0.2:
        at = rng.randrange(len(digits) + 1)
        return digits[:at] + thousands + digits[at:]
    groups = []
    while digits:
        groups.insert(0, digits[-3:])
        digits = digits[:-3]
    return thousands.join(groups)


def sign(rng):
    return rng.choice(["", "", "", "-", "+"])


def zeros(rng):
    return "0" * rng.choice([0, 0, 0, 0, 1, 3, 20, 40])


def digits(rng, most):
    length = rng.randint(1, most)
    return rng.choice([str(10**length - 1), str(10 ** (length - 1)), "".join(rng.choice("0123456789") for _ in range(length))])


def integer(rng, kind, csv):
    bits = int(kind.lstrip("uint"))
    edge = 1 << rng.choice([bits, bits - 1, bits - 1, 7, 8, 15, 16, 31, 32, 53, 63, 64])
    value = rng.choice([edge + rng.randint(-2, 2), -edge + rng.randint(-2, 2), rng.randint(-200, 200), rng.randint(-edge, edge), 0])
    return rng.choice([sign(rng) if value >= 0 else "-", "-" if value < 0 else ""]) + zeros(rng) + mark(rng, str(abs(value)), csv)


def fixed(rng, kind, csv):
    precision, scale = map(int, kind[8:-1].split(","))
    whole = mark(rng, digits(rng, max(1, precision - scale + rng.choice([0, 0, 0, 1]))), csv)
    places = rng.choice([scale, scale, scale + 1, max(0, scale - 1), 0, 1])
    fraction = "".join(rng.choice("0123456789") for _ in range(places)) + zeros(rng)
    point = csv.get("decimal", ".")
    return sign(rng) + rng.choice([whole + point + fraction, whole, point + fraction, whole + point])


FLOAT_EDGES = ["1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "4.9e-324", "2.4703282292062327e-324",
               "2.4703282292062328e-324", "3.4028234663852886e38", "3.4028235677973366e38", "3.4028235677973367e38", "1.401298464324817e-45",
               "7.006492321624085e-46", "7.006492321624086e-46", "2.2250738585072011e-308", "1e400", "1e-400", "9007199254740993", "16777217",
               "1e999999999999", "0e999999999", "123456789012345678", "0.1", "1e23", "8.5e-324", "-0", "0.0", "nan", "NaN", "-nan", "inf", "-inf",
               "Infinity", "+INFINITY", "infinit", "nann", "1e", "e5", "1e+", "0x1p3", "1_000", "1d5", ".", "-.", "+", "-", "1.5.5", "1e5.5"]


def floating(rng, kind, csv):
    point = csv.get("decimal", ".")
    if rng.random() < 0.4:
        return rng.choice(FLOAT_EDGES).replace(".", point)
    value = rng.choice([rng.gauss(0, 1000), rng.random(), rng.uniform(-1e18, 1e18), float(f"{rng.random():.17f}e{rng.randint(-330, 308)}")])
    text = rng.choice([repr(value), f"{value:.3f}" if abs(value) < 1e30 else repr(value), f"{value:.20e}", f"{value:E}"])
    if kind == "float32" and rng.random() < 0.3:
        # Halfway between two 32-bit floats, and just beside it.
        text = repr((rng.randrange(1 << 23, 1 << 24) + 0.5) * 2.0 ** rng.randint(-20, 20))
        if "e" not in text and rng.random() < 0.5:
            text += "0" * 12 + "1"
    return text.replace(".", point)


def boolean(rng, csv):
    return rng.choice(csv.get("true_values", ["true"]) + csv.get("false_values", ["false"]) + ["True", "TRUE", "1", "0", "yes", "truely", "fals", "true "])


def two(rng, high, low=0):
    return f"{rng.choice([low, high, rng.randint(low, high), rng.randint(low, high), high + 1]):02d}"


def date(rng):
    year = rng.choice(["1970", "1969", "0000", "0001", "9999", "1900", "2000", "2024", "2100", f"{rng.randint(0, 9999):04d}", f"{rng.randint(1900, 2100)}"])
    month, day = two(rng, 12, 1), rng.choice([two(rng, 28, 1), two(rng, 31, 1), "29", "30", "31"])
    return rng.choice([f"{year}-{month}-{day}"] * 12 + [f"{year}{month}{day}", f"{int(year)}-{month}-{day}", f"{year}/{month}/{day}",
                      f"{year}-{int(month)}-{day}", f"+{year}-{month}-{day}", f"1{year}-{month}-{day}", f"-{year}-{month}-{day}", f"{year}-{month}"])


def time(rng):
    text = two(rng, 23) + ":" + two(rng, 59)
    if rng.random() < 0.85:
        text += ":" + two(rng, 59)
        if rng.random() < 0.5:
            text += "." + "".join(rng.choice("0123456789") for _ in range(rng.choice([1, 3, 6, 6, 7, 9, 10]))) + rng.choice(["", "", "000", "0"])
    return rng.choice([text] * 15 + ["24:00:00", "23:59:60", text[1:], text + ":00", text.replace(":", ""), text + "Z", "1:02:03", text + " "])


def offset(rng):
    return rng.choice(["Z", "+00:00", "-00:00", "+01:00", "-0530", "+14", "+23:59", "-23:59", "+24:00", "+1:00", "z", "+01:60", " +01:00", "UTC", "+01:0", "+010000"])


def moment(rng, kind):
    text = date(rng) + rng.choice(["T", " ", "T", " ", "t", "  ", ""]) + time(rng)
    if rng.random() < (0.7 if kind == "timestamptz" else 0.1):
        text += offset(rng)
    return rng.choice([text] * 10 + [date(rng)])


def uuid(rng):
    text = f"{rng.getrandbits(128):032x}"
    if rng.random() < 0.6:
        text = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    text = rng.choice([str.upper, str.lower, str.lower, str.title])(text)
    return rng.choice([text] * 8 + [text[1:], text + "0", "{" + text + "}", "urn:uuid:" + text, text.replace("-", "", 1), text.replace("a", "g"), text[:-1] + "é"])


def some_json(rng, depth=0):
    kind = rng.random()
    if depth > 3 or kind < 0.5:
        return rng.choice(["1", "-0", "1.5e300", "1e999", "true", "null", '"a"', '"\\u00e9\\n"', '"\\ud800"', '"é🙂"', "0", '""', "123456789012345678901234567890"])
    inner = [some_json(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    blank = rng.choice(["", " ", "\n"])
    if kind < 0.75:
        return "[" + ("," + blank).join(inner) + blank + "]"
    return "{" + ("," + blank).join(f'"k{n}":{blank}{value}' for n, value in enumerate(inner)) + "}"


def json_text(rng):
    text = some_json(rng)
    odd = ["01", "NaN", "-Infinity", "'a'", "[1,]", "{1:2}", '{"a":1,}', "tru", "[", "]", '"\\x"', '"\t"', "1.", ".5", "+1", "1e", '"\\u12"', "[1 2]", "nul", '"a', "{}{}",
           "[" * 128 + "]" * 128, "[" * 129 + "]" * 129, '{"a":' * 64 + "[" * 64 + "]" * 64 + "}" * 64, '"[[[["', "\ufeff1", "\xa01", " 1 ", '"\\ud83d\\ude42"']
    return rng.choice(odd) if rng.random() < 0.35 else text


def text(rng):
    return rng.choice(["", "a", "é", "東京", "🙂", "x" * 5000, '"', ",", "\n", " a ", "NULL", "nan", "\x00", "'", "1"])


MAKERS = {"float32": floating, "float64": floating, "boolean": lambda rng, _, csv: boolean(rng, csv), "string": lambda rng, *_: text(rng),
          "date": lambda rng, *_: date(rng), "time": lambda rng, *_: time(rng), "timestamp": lambda rng, kind, _: moment(rng, kind),
          "timestamptz": lambda rng, kind, _: moment(rng, kind), "uuid": lambda rng, *_: uuid(rng), "json": lambda rng, *_: json_text(rng)}


def maker(kind):
    if kind.startswith("decimal"):
        return fixed
    return MAKERS.get(kind, integer)


def kind(rng):
    choice = rng.random()
    if choice < 0.3:
        return rng.choice(INTEGERS)
    if choice < 0.5:
        precision = rng.choice([1, 2, 9, 10, 18, 19, 38, rng.randint(1, 38)])
        return f"decimal({precision},{rng.choice([0, precision, min(2, precision), rng.randint(0, precision)])})"
    return rng.choice(OTHERS)


def cell(rng, kind, csv):
    if rng.random() < 0.05:
        return rng.choice(["", "NA", "-", " "])
    if rng.random() < 0.05:
        return maker(rng.choice(OTHERS + ["int32"]) if not kind.startswith("decimal") else "int64")(rng, "int32", csv)
    word = maker(kind)(rng, kind, csv)
    if rng.random() < 0.04:
        word = rng.choice([" ", "\t", "\xa0"]) + word if rng.random() < 0.5 else word + rng.choice([" ", "\n", "x", "٣"])
    return word


def case(rng):
    csv = {}
    if rng.random() < 0.3:
        csv["decimal"] = rng.choice([",", ";", ":"])
    if rng.random() < 0.3:
        csv["thousands"] = rng.choice([t for t in (".", ",", "'", " ", "_") if t != csv.get("decimal", ".")])
    if rng.random() < 0.3:
        csv["true_values"], csv["false_values"] = rng.choice([(["yes", "y"], ["no", "n"]), (["1"], ["0"]), (["T", "true"], ["F", "false"]), (["ja, doch, sicher"], [""])])
    if rng.random() < 0.4:
        csv["null_values"] = rng.choice([[], ["", "NA"], ["-"], ["0"], ["nan", ""]])
    for name in ("quoted_nulls", "trim"):
        if rng.random() < 0.3:
            csv[name] = True
    kinds = [kind(rng) for _ in range(rng.choice([1, 2, 4, 8]))]
    columns = [{"name": f"c{n}", "type": k} for n, k in enumerate(kinds)]
    # With many columns, some bad cell would reject every row.
    for column in columns:
        if rng.random() < (0.2 if len(columns) == 1 else 0.85):
            column["on_error"] = "null"
        if rng.random() < 0.1:
            column["nullable"] = False
    delimiter = rng.choice([",", "|", "\t"])
    if delimiter != ",":
        csv["delimiter"] = delimiter
    if csv.get("false_values") == [""]:
        csv["null_values"] = ["NA"]
    lines = [delimiter.join(column["name"] for column in columns)]
    for _ in range(rng.choice([1, 5, 20, 60])):
        words = [cell(rng, k, csv) for k in kinds]
        quote = ['"' in w or delimiter in w or "\n" in w or rng.random() < 0.15 for w in words]
        lines.append(delimiter.join('"' + w.replace('"', '""') + '"' if q else w for w, q in zip(words, quote)))
    mapping = {"columns": columns}
    if csv:
        mapping["csv"] = csv
    return program.Case(mapping, {"a.csv": ("\n".join(lines) + "\n").encode()})

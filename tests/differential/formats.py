"""Random patterns of dates and times, and texts that fit them, nearly fit them, or don't."""

import datetime as dt
import functools
import zoneinfo

import moments
import program

DATES = ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%y%m%d", "%d%m%Y", "%d %b %Y", "%d-%B-%Y", "%a, %d %b %Y", "%A %e %B %Y", "%Y-%j", "%Y%j", "%D", "%F",
         "%d.%m.%y", "%Y/%-m/%-d", "%_d.%_m.%Y", "%b %e %Y", "%C%y-%m-%d", "%Y年%m月%d日", "%u %Y-%m-%d", "%Y.%m.%d."]
TIMES = ["%H:%M:%S", "%H:%M", "%H%M%S", "%H%M", "%I:%M %p", "%I:%M:%S%P", "%H:%M:%S%.f", "%H:%M:%S.%f", "%H%M%S%f", "%H%M%S%3f", "%H:%M:%S%.3f", "%H:%M:%S%.6f", "%T",
         "%R", "%H:%M:%S,%f", "%k:%M", "%l:%M %p", "%H.%M.%S", "%H h %M", "%H:%M:%S.%6f", "%I%M%S%p", "%H:%M:%S%.9f", "%Hh%Mm%Ss", "%H:%M:%S.%9f"]
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Sydney", "Asia/Kolkata", "America/St_Johns", "UTC", "Asia/Tokyo", "Europe/London", "Africa/Cairo"]
NAMES = {"a": 3, "A": 0, "b": 3, "B": 0}


def written(rng, pattern, at):
    """Formats `at` by the pattern, with Python's strftime and a few additions."""
    out = []
    for kind, argument in moments.items(pattern):
        if kind == "text" or (kind == "space" and argument == " "):
            out.append(argument)
        elif kind in ("number", "blank"):
            name, width = argument
            value = {"year": at.year, "month": at.month, "day": at.day, "year2": at.year % 100, "century": at.year // 100, "ordinal": at.timetuple().tm_yday,
                     "hour": at.hour, "hour12": at.hour % 12 or 12, "minute": at.minute, "second": at.second, "weekday": at.isoweekday()}[name]
            text = f"{value:0{width}d}"
            if rng.random() < 0.12:
                text = rng.choice([str(value), f"{value:{width}d}", "0" + text, text[1:], " " + text, "+" + text])
            out.append(text)
        elif kind.strip(".369") == "f":
            digits = f"{at.microsecond:06d}"
            width = kind.strip(".f")
            digits = digits.ljust(9, "0")[:int(width)] if width else rng.choice([digits, digits, digits + "000", digits.rstrip("0") or "0", digits + "001", digits[:3]])
            out.append(rng.choice([".", ".", ".", ""] if kind == ".f" else ["."]) + digits if "." in kind else digits)
            if kind.startswith(".") and rng.random() < 0.15:
                out[-1] = ""
        elif kind in ("p", "P"):
            out.append(rng.choice(["am", "AM", "Am"] if at.hour < 12 else ["pm", "PM"]))
        elif kind in NAMES:
            name = at.strftime("%A" if kind in "aA" else "%B")
            name = name[:3] if kind in "ab" or rng.random() < 0.2 else name
            out.append(rng.choice([name, name, name.upper(), name.lower()]))
        elif kind in ("z", ":z", "#z"):
            out.append(rng.choice(["+00:00", "+0100", "-05:30", "+02:00", "-0000", "+0545", "+01", "Z", "+1:00", "+24:00", "+01:60", ""]))
        elif kind == "s":
            out.append(str(rng.choice([0, 1, 86399, 1700000000, 253402300799, 253402300800])))
    return "".join(out)


def pattern(rng, kind):
    if kind == "date":
        return rng.choice(DATES)
    if kind == "time":
        return rng.choice(TIMES)
    if rng.random() < 0.03:
        return "%s"
    date = rng.choice(DATES)
    # A day without leading zeros can't adjoin an hour.
    text = date + rng.choice([" ", "T", "  ", " um "] + ([] if date.endswith("%-d") else [""])) + rng.choice(TIMES)
    if kind == "timestamptz" and rng.random() < 0.4:
        text += rng.choice(["%z", " %z", "%:z", "%#z"])
    return text


@functools.cache
def changes(zone, year):
    """Local times up to an hour before a clock change of a zone."""
    def local(hours):
        return (dt.datetime(year, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(hours=hours)).astimezone(zoneinfo.ZoneInfo(zone))

    def changing(hours, step):
        return [at for at in hours if local(at).utcoffset() != local(at + step).utcoffset()]

    return [local(at).replace(tzinfo=None) for day in changing(range(0, 8760, 24), 24) for at in changing(range(day, day + 24), 1)]


def moment(rng, zone):
    if zone:
        # Years for which the rules of all zones here are known.
        year = rng.randint(1975, 2020)
        if rng.random() < 0.6 and changes(zone, year):
            minutes = rng.choice([-60, -1, 0, 1, 59, 60, 61, 119, 120, 121, rng.randint(-90, 210)])
            at = rng.choice(changes(zone, year)) + dt.timedelta(minutes=minutes)
            return at.replace(second=rng.choice([0, 59]), microsecond=rng.choice([0, 500_000]))
        return dt.datetime(year, 1, 1) + dt.timedelta(seconds=rng.randint(0, 31_000_000))
    year = rng.choice([1, 999, 1000, 1582, 1899, 1900, 1969, 1970, 1999, 2000, 2024, 2038, 2068, 2069, 2100, 9999, rng.randint(1, 9999)])
    at = dt.datetime(year, 1, 1) + dt.timedelta(days=rng.randint(0, 364), seconds=rng.choice([0, 1, 43200, 86399, rng.randint(0, 86399)]))
    return at.replace(microsecond=rng.choice([0, 1, 500_000, 999_999, 123_456, rng.randint(0, 999_999)]))


def near(rng, text):
    """Applies a small random edit to the text."""
    at = rng.randrange(len(text) + 1)
    return rng.choice([text[:at] + text[at + 1:], text[:at] + rng.choice("0123456789 :.-x") + text[at:], text[:at] + rng.choice("0123456789") + text[at + 1:], text + " ", text.replace("0", "٠", 1)])


def is_beyond_python(column, text):
    """Whether a text has a local time after the year 9999, which Python's zones don't support."""
    try:
        moments.parser(column)(text, {})
    except moments.Bad:
        pass
    except OverflowError:
        return True
    return False


def case(rng):
    columns, makers = [], []
    for n in range(rng.choice([1, 2, 3])):
        kind = rng.choice(["date", "time", "timestamp", "timestamptz"])
        column = {"name": f"c{n}", "type": kind, "on_error": "null"}
        if rng.random() < 0.3:
            column["on_error"] = "reject"
        zoned = kind == "timestamptz" and rng.random() < 0.6
        if zoned:
            column["timezone"] = rng.choice(ZONES)
        if rng.random() < 0.9:
            column["formats"] = list(dict.fromkeys(pattern(rng, kind) for _ in range(rng.choice([1, 1, 1, 2, 3]))))
        columns.append(column)
        makers.append((column, column.get("timezone")))
    lines = [",".join(column["name"] for column in columns)]
    for _ in range(rng.choice([5, 20, 60])):
        words = []
        for column, zone in makers:
            at = moment(rng, zone)
            iso = {"date": "%Y-%m-%d", "time": "%H:%M:%S%.f"}.get(column["type"], "%Y-%m-%d %H:%M:%S%.f")
            text = written(rng, rng.choice(column.get("formats", [iso])), at)
            text = near(rng, text) if rng.random() < 0.15 else text
            words.append("" if zone and is_beyond_python(column, text) else text)
        lines.append(",".join('"' + w.replace('"', '""') + '"' for w in words))
    return program.Case({"columns": columns}, {"a.csv": ("\n".join(lines) + "\n").encode()})

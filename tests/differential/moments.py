"""The oracle's dates and times: ISO 8601, strftime patterns as docs/pipelines.md has them, and zones by `zoneinfo`."""

import datetime as dt
import re
import zoneinfo

DAY = 86_400_000_000
YEARS = range(-262_143, 262_143)
# The offset of epoch times, which have no zone.
EPOCH = "epoch"
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"]
SHORTHANDS = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y"}
# Specifier: (field, digits)
NUMBERS = {"Y": ("year", 4), "m": ("month", 2), "d": ("day", 2), "e": ("day", 2), "y": ("year2", 2), "C": ("century", 2),
           "j": ("ordinal", 3), "H": ("hour", 2), "k": ("hour", 2), "I": ("hour12", 2), "l": ("hour12", 2), "M": ("minute", 2),
           "S": ("second", 2), "u": ("weekday", 1)}
LIMITS = {"month": (1, 12), "day": (1, 31), "ordinal": (1, 366), "hour": (0, 23), "hour12": (1, 12), "minute": (0, 59),
          "second": (0, 60), "year2": (0, 99), "century": (0, 99), "weekday": (1, 7)}


class Bad(Exception):
    """The reason for which a cell is rejected."""


class Misfit(Exception):
    """The text doesn't match this pattern."""


def days(year, month, day):
    """Days since 1970 of a date of the Gregorian calendar, of any year; None if there is none."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if year not in YEARS:
        return None
    lengths = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    if not 1 <= month <= 12 or not 1 <= day <= lengths[month - 1]:
        return None
    before = year - 1
    return before * 365 + before // 4 - before // 100 + before // 400 + sum(lengths[:month - 1]) + day - 1 - 719_162


def clock(hour, minute, second, micros=0):
    if hour > 23 or minute > 59 or second > 59:
        raise Misfit
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros


def micros(digits):
    """Microseconds of a fraction's digits; nothing is rounded."""
    if not 1 <= len(digits) <= 9 or digits[6:].strip("0"):
        raise Misfit
    return int(digits[:6].ljust(6, "0"))


def offset(text):
    """Seconds of an ISO offset."""
    if text == "Z":
        return 0
    found = re.fullmatch(r"([+-])(\d\d)(?::?(\d\d))?", text, re.A)
    if not found or int(found[2]) > 23 or int(found[3] or 0) > 59:
        raise Misfit
    seconds = int(found[2]) * 3600 + int(found[3] or 0) * 60
    return -seconds if found[1] == "-" else seconds


DATE = r"(\d{4})-(\d\d)-(\d\d)"
TIME = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?"


def iso(kind, text):
    """(days, microseconds of the day, offset), each of them perhaps None"""
    pattern = {"date": DATE, "time": TIME}.get(kind, DATE + "[T ]" + TIME + "(.*)")
    found = re.fullmatch(pattern, text, re.A | re.S)
    if not found:
        raise Misfit
    day = time = away = None
    groups = list(found.groups())
    if kind != "time":
        day = days(*map(int, groups[:3]))
        if day is None:
            raise Misfit
        groups = groups[3:]
    if kind != "date":
        time = clock(int(groups[0]), int(groups[1]), int(groups[2] or 0), micros(groups[3]) if groups[3] else 0)
    if kind.startswith("timestamp") and groups[4]:
        away = offset(groups[4])
    return day, time, away


def items(pattern):
    """(kind, argument) of each part of a pattern."""
    out, at = [], 0
    while at < len(pattern):
        if pattern[at] != "%":
            kind = "space" if pattern[at].isspace() else "text"
            out.append((kind, pattern[at]))
            at += 1
            continue
        found = re.compile(r"%([-_0])?(\.[369]?f|[369]f|[:#]?z|.)").match(pattern, at)
        what = found[2]
        at = found.end()
        if what in SHORTHANDS:
            out += items(SHORTHANDS[what])
        elif what == "%":
            out.append(("text", "%"))
        elif what in ("n", "t"):
            out.append(("space", what))
        elif what in NUMBERS:
            # These accept blanks in place of leading zeros.
            out.append(("blank" if what in "ekl" or found[1] == "_" else "number", NUMBERS[what]))
        else:
            out.append((what, None))
    return out


def digits_begin(item):
    return item is not None and (item[0] in ("number", "blank", "f", "3f", "6f", "9f", "s") or item[0] == "text" and item[1] in "0123456789")


class Pattern:
    def __init__(self, pattern):
        self.items = items(pattern)

    def read(self, text):
        self.text, self.at, self.found, self.impossible = text, 0, {}, False
        for place, (kind, argument) in enumerate(self.items):
            before = self.items[place - 1] if place else None
            after = self.items[place + 1] if place + 1 < len(self.items) else None
            self.item(kind, argument, digits_begin(before), digits_begin(after))
        if self.at != len(text) or self.impossible:
            raise Misfit
        return self.resolve()

    def match(self, pattern):
        found = re.compile(pattern, re.A | re.I).match(self.text, self.at)
        if not found:
            raise Misfit
        self.at = found.end()
        return found

    def put(self, name, value):
        low, high = LIMITS.get(name, (value, value))
        if not low <= value <= high or self.found.setdefault(name, value) != value:
            raise Misfit

    def blanks(self):
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def item(self, kind, argument, after_digits, before_digits):
        if kind == "text":
            if not self.text.startswith(argument, self.at):
                raise Misfit
            self.at += 1
        elif kind == "space":
            self.blanks()
        elif kind in ("number", "blank"):
            name, width = argument
            if after_digits or before_digits:
                field = self.text[self.at:self.at + width]
                if kind == "blank":
                    field = field.lstrip(" ").rjust(1, "x") if len(field) == width else "x"
                if not re.fullmatch(r"[0-9]+" if kind == "blank" else rf"[0-9]{{{width}}}", field, re.A):
                    raise Misfit
                self.at += width
                self.put(name, int(field))
                return
            self.blanks()
            if name == "year":
                # Four digits, or a sign and any number of them.
                year = self.match(r"[+-]\d+|\d{4}")[0]
                self.put(name, int(year))
            else:
                self.put(name, int(self.match(rf"\d{{1,{width}}}")[0]))
        elif kind == "f":
            digits = self.match(r"\d{9}" if before_digits else r"\d{1,9}")[0]
            self.put("micros", micros(digits))
        elif kind in ("3f", "6f", "9f"):
            self.put("micros", micros(self.match(rf"\d{{{kind[0]}}}")[0]))
        elif kind in (".3f", ".6f", ".9f"):
            if self.text.startswith(".", self.at):
                self.put("micros", micros(self.match(rf"\.(\d{{{kind[1]}}})")[1]))
        elif kind == ".f":
            if self.text.startswith(".", self.at):
                digits = self.match(r"\.(\d+)")[1]
                # Any number of leading zeros.
                self.put("micros", micros(digits[:9]) if not digits[9:].strip("0") else micros("1" * 10))
        elif kind in ("p", "P"):
            self.put("afternoon", self.match(r"[ap]m")[0].lower() == "pm")
        elif kind in ("b", "h", "B", "a", "A"):
            names = WEEKDAYS if kind in "aA" else MONTHS
            short = "|".join(name[:3] for name in names)
            # The full name if it is there, else three letters.
            pattern = "|".join(names) + "|" + short if kind in "AB" else short
            name = self.match(pattern)[0].lower()
            number = next(at for at, whole in enumerate(names, 1) if whole.startswith(name[:3]))
            self.put("weekday" if kind in "aA" else "month", number)
        elif kind in ("z", ":z", "#z"):
            self.blanks()
            if kind == "#z" and (found := re.compile(r"z|utc", re.I).match(self.text, self.at)):
                self.at = found.end()
                self.put("offset", 0)
                return
            found = self.match(r"([+-])(\d\d)[:\s]*(\d\d)" if kind != "#z" else r"([+-])(\d\d)[:\s]*(\d\d)?")
            if found[3] is None and self.at < len(self.text):
                raise Misfit
            if int(found[2]) > 23 or int(found[3] or 0) > 59:
                raise Misfit
            seconds = int(found[2]) * 3600 + int(found[3] or 0) * 60
            self.put("offset", -seconds if found[1] == "-" else seconds)
        elif kind == "s":
            self.blanks()
            self.put("epoch", int(self.match(r"\d+")[0]))
        else:
            raise NotImplementedError(kind)

    def resolve(self):
        found = self.found
        if "epoch" in found:
            day, second = divmod(found["epoch"], 86_400)
            if day > days(YEARS[-1], 12, 31):
                raise Misfit
            return day, second * 1_000_000, EPOCH
        return self.date(), self.time(), found.get("offset")

    def date(self):
        found = self.found
        if not {"year", "year2", "century", "month", "day", "ordinal", "weekday"} & found.keys():
            return None
        year = found.get("year")
        if year is None and "century" in found and "year2" in found:
            year = found["century"] * 100 + found["year2"]
        elif year is None and "year2" in found:
            # 69 is 2069, 70 is 1970.
            year = found["year2"] + (2000 if found["year2"] < 70 else 1900)
        elif year is not None and (year < 0 and ("year2" in found or "century" in found)):
            raise Misfit
        if year is None or found.get("year2", year % 100) != year % 100 or found.get("century", year // 100) != year // 100:
            raise Misfit
        if "month" in found and "day" in found:
            day = days(year, found["month"], found["day"])
        elif "ordinal" in found and found["ordinal"] <= 365 + (days(year, 2, 29) is not None):
            day = days(year, 1, 1) + found["ordinal"] - 1
        else:
            raise Misfit
        if day is None or found.get("weekday", (day + 3) % 7 + 1) != (day + 3) % 7 + 1:
            raise Misfit
        if "ordinal" in found and day != days(year, 1, 1) + found["ordinal"] - 1:
            raise Misfit
        if "month" in found and not days(year, found["month"], 1) <= day < days(year, found["month"], 1) + 31:
            raise Misfit
        return day

    def time(self):
        found = self.found
        if not {"hour", "hour12", "afternoon", "minute", "second", "micros"} & found.keys():
            return None
        hour = found.get("hour")
        if "hour12" in found and (hour is not None or "afternoon" in found):
            by_twelve = found["hour12"] % 12 + 12 * found.get("afternoon", hour is not None and hour >= 12)
            hour = by_twelve if hour is None else hour
            if hour != by_twelve:
                raise Misfit
        if hour is None or "minute" not in found or ("micros" in found and "second" not in found):
            raise Misfit
        if found.get("afternoon", hour >= 12) != (hour >= 12):
            raise Misfit
        return clock(hour, found["minute"], found.get("second", 0), found.get("micros", 0))


def in_zone(zone, local):
    """The instants, in microseconds, at which clocks of `zone` show `local`."""
    wall = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=local)
    found = set()
    for fold in (0, 1):
        away = wall.replace(tzinfo=zone, fold=fold).utcoffset() // dt.timedelta(microseconds=1)
        instant = local - away
        if dt.datetime.fromtimestamp(0, dt.timezone.utc) + dt.timedelta(microseconds=instant) < dt.datetime.max.replace(tzinfo=dt.timezone.utc):
            back = (dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=instant)).astimezone(zone)
            if back.replace(tzinfo=None) == wall:
                found.add(instant)
    return found


def parser(column):
    kind = column["type"]
    patterns = [Pattern(pattern) for pattern in column.get("formats", [])]
    zone = column.get("timezone")
    zone = zoneinfo.ZoneInfo(zone) if zone not in (None, "UTC") else None

    def value(moment):
        day, time, away = moment
        away = 0 if away == EPOCH and kind == "timestamptz" else None if away == EPOCH else away
        if kind in ("date", "time", "timestamp") and away is not None:
            raise Misfit
        if kind == "date":
            if day is None or time:
                raise Misfit
            return day
        if kind == "time":
            if day is not None or time is None:
                raise Misfit
            return time
        if day is None:
            raise Misfit
        local = day * DAY + (time or 0)
        if kind == "timestamp":
            return local
        if away is not None or zone is None:
            return local - (away or 0) * 1_000_000
        instants = in_zone(zone, local)
        if len(instants) != 1:
            raise Misfit
        return instants.pop()

    def parse(text, _):
        found = set()
        for read in [pattern.read for pattern in patterns] or [lambda text: iso(kind, text)]:
            try:
                found.add(value(read(text)))
            except Misfit:
                continue
        # The cell is ambiguous: formats read different values.
        if len(found) != 1:
            raise Bad("wrong_type")
        return found.pop()

    return parse

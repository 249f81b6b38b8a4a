"""The dataset `hard`, as spreadsheets export it. Semicolons, decimal commas, dots between thousands, dates written in
two ways, quoted text with semicolons, quotes and newlines, and 3% of invalid rows:

1% with text for a number, 1% with a date that isn't one, 0.5% cut short, 0.5% without their id.
"""

import os

import numpy as np

FILES = 24
ROWS = 125_000
REGIONS = "nord süd ost west mitte übersee küste inland".split()
STATES = ["offen", "bezahlt", "versandt", "storniert"]
NAMES = "Müller Schmidt Øster Łukasz Ferrer Okafor Tanaka O'Neill García Kovač Nguyễn Silva".split()
WORDS = "Lieferung bitte an die Rampe hinten links vor zehn Uhr melden; Rückfragen per Mail Fenster Türen Größe XL".split()


def grouped(digits):
    """`1234567` as `1.234.567`."""
    head, tail = digits[:-3], digits[-3:]
    return f"{grouped(head)}.{tail}" if head and head != "-" else digits


def comma(hundredths):
    """Hundredths as `1.234,50`."""
    sign, n = ("-", -hundredths) if hundredths < 0 else ("", hundredths)
    return f"{sign}{grouped(str(n // 100))},{n % 100:02d}"


def write(folder, i, scale):
    g = np.random.Generator(np.random.PCG64([4, i]))
    n = int(ROWS * scale)
    pick = lambda high: g.integers(0, high, n).tolist()
    days = np.datetime_as_string(np.datetime64("2024-01-01") + g.integers(0, 366, n).astype("timedelta64[D]")).tolist()
    ship, written, bad, kind = pick(86_400), pick(2), g.random(n).tolist(), g.random(n).tolist()
    region, state, name, first, words = pick(len(REGIONS)), pick(4), pick(len(NAMES)), pick(100_000), pick(len(WORDS) - 5)
    quantity = np.minimum(g.zipf(1.3, n), 9_999_999).tolist()
    price, amount = (g.gamma(2, 4_000, n)).astype(np.int64).tolist(), (g.normal(80_000, 300_000, n)).astype(np.int64).tolist()
    discount = g.random(n).tolist()
    rows = ["order_id;booked_on;customer;region;quantity;unit_price;amount;discount;status;shipped_at;comment\r\n"]
    for r in range(n):
        year, month, day = days[r].split("-")
        clock = f"{ship[r] // 3600:02d}:{ship[r] // 60 % 60:02d}:{ship[r] % 60:02d}"
        booked, shipped = (days[r], f"{days[r]} {clock}") if written[r] else (f"{day}.{month}.{year}", f"{day}.{month}.{year} {clock}")
        text = " ".join(WORDS[words[r]:words[r] + 5])
        if kind[r] < 0.02:
            text += ' ""dringend""\nzweite Zeile'
        comment = "" if kind[r] > 0.8 else f'"{text}"' if ";" in text or '"' in text else text
        cells = [str(i * n + r), booked, f"{NAMES[name[r]]} {first[r]}", REGIONS[region[r]], grouped(str(quantity[r])), comma(price[r]),
                 comma(amount[r]), "" if discount[r] < 0.3 else f"{discount[r]:.4f}".replace(".", ","), STATES[state[r]],
                 "" if state[r] == 0 else shipped, comment]
        if bad[r] < 0.01:
            cells[4] = "n. a."
        elif bad[r] < 0.02:
            cells[1] = "31.13.2024"
        elif bad[r] < 0.025:
            cells = cells[:3]
        elif bad[r] < 0.03:
            cells[0] = ""
        rows.append(";".join(cells) + "\r\n")
    with open(os.path.join(folder, f"hard_{i:03d}.csv"), "w", encoding="utf-8", newline="") as file:
        file.write("".join(rows))

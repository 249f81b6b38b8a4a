"""Files around the program's chunk size, run with settings that must not change the result."""

import dialects
import program

# Chunk sizes in bytes for a build with failpoints; None is the default, 256 KiB at 64 MiB of memory.
CHUNK_BYTES = [1, 2, 3, 5, 16, 61, 64, 256, 1000, None]
CHUNK_BYTES_OF_LARGE = [4096, 65_536, 100_000, None]
LARGE = "large"


def settings(rng, label=""):
    """Random options of a run."""
    chunk_bytes = rng.choice(CHUNK_BYTES_OF_LARGE if label == LARGE else CHUNK_BYTES)
    return {"chunk_bytes": chunk_bytes, "threads": rng.choice([1, 2, 3, 4]), "memory": rng.choice([64, 64, 200, 512])}


def ended(rng, files):
    return {rng.choice([name, name + ".gz", name + ".zst"]): data for name, data in files.items()}


def large(rng):
    """A file larger than the default chunk: many rows, or few huge ones."""
    csv = {"blank_lines": rng.choice(["skip", "null", "reject"])}
    encoding = rng.choice(["utf-8", "utf-8", "utf-16le", "windows-1252", "shift_jis"])
    if encoding != "utf-8":
        csv["encoding"] = encoding
    if rng.random() < 0.3:
        csv["skip_footer_rows"] = rng.choice([1, 3, 1000])
        csv["footer_values"] = rng.choice([None, [], ["*"], ["1*", "2*", "3*"]])
    if rng.random() < 0.3:
        csv["comment"] = "#"
    if rng.random() < 0.2:
        csv["escape"] = "\\"
    huge = rng.random() < 0.4
    if huge:
        csv["record_bytes_max"] = rng.choice([1024, 100_000, 300_000, 2_097_152])
    end = rng.choice(["\n", "\r\n"])
    wide = dialects.WIDE[encoding]
    lines, bytes_left = ["id,word"], rng.choice([200_000, 600_000, 900_000])
    n = 0
    while bytes_left > 0:
        choice = rng.random()
        if huge and choice < 0.02:
            word = '"' + rng.choice([",", "x", "\r\n", '""', wide[0]]) * rng.choice([500, 40_000, 130_000, 150_000]) + '"'
        elif choice < 0.05:
            word = f'"{wide}\n, ""quoted""{end}"' if "escape" not in csv else f'"{wide}\n, \\"quoted{end}"'
        elif choice < 0.07:
            lines.append(rng.choice(["", "# a \"comment\"" if "comment" in csv else "", "odd", "1,2,3", 'x,a"b']))
            continue
        else:
            word = rng.choice(["a", "bc", wide, "", "x" * 60])
        lines.append(f"{n},{word}")
        bytes_left -= len(lines[-1]) + 1
        n += 1
    text = end.join(lines) + rng.choice([end, "", '\n1,"open'])
    codec = dialects.CODECS.get(encoding, encoding)
    mapping = {"csv": csv, "columns": [{"name": "id", "type": "int32"}, {"name": "word", "type": "string"}]}
    return program.Case(mapping, ended(rng, {"a.csv": text.encode(codec)}), LARGE)


def case(rng):
    if rng.random() < 0.01:
        return large(rng)
    small = dialects.case(rng)
    return program.Case(small.mapping, ended(rng, small.files))

"""Lakes with very many one-row sources that take little disk space: most sources are links to a few files."""

import hashlib
import os

from scale import HEADER

DISTINCT = 8
DAYS = 28
# File systems limit the links of a file; ext4 to 65,000.
LINKS_MAX = 30_000


def one_row(seed):
    return f"{seed},2023-02-{seed % DAYS + 1:02d}T00:00:00,s1,1.5,\n".encode()


def name(at):
    return f"{at // 1000:04d}/{at:07d}.csv"


class Links:
    """Files that sources link to, and their digests."""

    def __init__(self, folder, contents):
        self.folder, self.contents = folder, contents
        self.digests = [hashlib.md5(content).hexdigest() for content in contents]
        os.makedirs(folder)

    def file(self, at):
        """The file for the source of this number, and its MD5."""
        which, turn = at % len(self.contents), at // (len(self.contents) * LINKS_MAX)
        path = os.path.join(self.folder, f"{which}-{turn}")
        if not os.path.exists(path):
            with open(path, "wb") as file:
                file.write(self.contents[which])
        return path, self.digests[which]


def one_row_contents():
    return [HEADER + one_row(seed) for seed in range(DISTINCT)]

"""Code cannot write more than its disk holds through a database."""
# covers: CIRCLE, disk, indirect: an index
# limits: {"disk_bytes": 16777216}
# ends: limit_exceeded disk | raised OperationalError

import sqlite3

from probe import reached

base = sqlite3.connect("index.db")
base.execute("CREATE TABLE entries (content BLOB)")
base.executemany("INSERT INTO entries VALUES (?)", ((b"x" * 100_000,) for _ in range(400)))
base.commit()
reached("40 MB")

"""A file of a gigabyte that takes no space is not delivered."""
# covers: known failure: sparse files
# limits: {"collected_file_bytes": 16777216}
# ends: completed
# delivers: nothing
# uncontained: it attacks a host that collects files, and nobody does

with open("/tmp/output/monster.csv", "wb") as file:
    file.truncate(1 << 30)

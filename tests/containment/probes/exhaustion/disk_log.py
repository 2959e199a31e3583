"""Code cannot write more than its disk holds by a log that nobody rotates."""
# covers: CIRCLE, disk, indirect: a verbose log
# limits: {"disk_bytes": 16777216}
# ends: limit_exceeded disk

from probe import reached

line = "WARNING retrying " + "." * 8000 + "\n"
for _ in range(100):
    with open("app.log", "a") as log:
        log.writelines(line for _ in range(40))
reached("32 MB")

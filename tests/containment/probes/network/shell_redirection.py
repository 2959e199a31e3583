"""A shell that code starts cannot open a TCP connection."""
# covers: SandboxEval, external communication; by a subprocess

import subprocess

from probe import bait, held, holds_if, reached

with holds_if(OSError):
    command = f"exec 3<>/dev/tcp/127.0.0.1/{bait.tcp_port} && head -c 20 <&3"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, timeout=10, check=False)
    if ran.stdout:
        reached(f"{len(ran.stdout)} bytes")
    held(ran.stderr.decode())

"""A process as light as can be, in whose name the nursery forks one: `sweep_client.py SOCKET KIND ARGUMENTS…`.

The forked process has this one's streams and environment. A request to end goes to it, and as it ends so does this one.
"""

import json
import os
import signal
import socket
import sys


def main() -> None:
    """Ask for the process, and wait for its end."""
    with socket.socket(socket.AF_UNIX) as nursery:
        nursery.connect(sys.argv[1])
        socket.send_fds(nursery, [b"."], [0, 1, 2])
        nursery.sendall(json.dumps({"arguments": sys.argv[2:], "environment": dict(os.environ)}).encode() + b"\n")
        answers = nursery.makefile()
        child = int(answers.readline())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, _: os.kill(child, received))
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0), os.dup2(null, 1)
        code = int(answers.readline())
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


main()

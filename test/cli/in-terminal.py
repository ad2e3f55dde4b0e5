"""Runs a command in a pseudo-terminal of its own: in-terminal.py COMMAND ARGUMENT...

What comes on stdin is typed there, what the terminal shows goes to stdout, and the command's exit code is this one's.
"""

import fcntl
import os
import pty
import select
import struct
import sys
import termios

COLUMNS, ROWS = 100, 40

pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

sources = [terminal, 0]
while True:
    ready, _, _ = select.select(sources, [], [])
    if 0 in ready:
        typed = os.read(0, 4096)
        if typed:
            os.write(terminal, typed)
        else:
            sources.remove(0)
    if terminal in ready:
        try:
            shown = os.read(terminal, 4096)
        except OSError:  # The last process has closed the terminal.
            break
        if not shown:
            break
        os.write(1, shown)

_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256)

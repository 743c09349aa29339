"""Types commands at an interactive shell with job control, on a terminal of its own; prints what it answered.

usage: on_terminal.py
"""
import os
import pty
import re
import select
import sys
import time

STEPS = [
    # what is typed, what must come
    ("sleep 100", None),
    ("\x1a", r"Stopped"),                   # control-Z
    ("jobs", r"\[1\]\+\s+Stopped\s+sleep 100"),
    ("bg", r"\[1\]\+ sleep 100 &"),
    ("jobs", r"\[1\]\+\s+Running\s+sleep 100 &"),
    ("fg", r"sleep 100"),
    ("\x03", r"\$ $"),                      # control-C
    ("echo interrupted $?", r"interrupted 130"),
    ("sleep 100 | cat &", r"\[1\] \d+"),
    ("kill %1; wait %1; echo ended $?", r"ended 143"),
    ("head -c 2000000 /dev/zero | xz -0 -T2 --block-size=300000 | xz -dc -T2 | wc -c", r"2000000"),
    ("trap 'echo resized' WINCH; kill -WINCH $$", r"resized"),
    ("cat", None),
    ("typed", r"typed\s+typed"),
    ("\x04", r"\$ $"),                      # end of file
    ("exit 6", None),
]


def read_until(terminal, pattern, seconds=60):
    """What comes until the pattern is found; it stops on its own if nothing is awaited."""
    text, end = "", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                got = os.read(terminal, 4096)
            except OSError:
                return text
            if not got:
                return text
            text += got.decode(errors="replace").replace("\r", "")
        if pattern and re.search(pattern, text):
            return text
    raise SystemExit(f"waited for {pattern!r}, got {text!r}")


def name_of(process):
    try:
        with open(f"/proc/{process}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


def wait_for_foreground(name):
    """Until that command has the terminal, and has begun: before, its shell gets what is typed, or ignores it."""
    while name_of(os.tcgetpgrp(terminal)) != name:
        time.sleep(0.01)


pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(PS1="$ ", TERM="dumb")
    os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
read_until(terminal, r"\$ $")
for keys, awaited in STEPS:
    control = len(keys) == 1
    os.write(terminal, keys.encode() if control else keys.encode() + b"\n")
    if awaited is None:
        if keys != "exit 6":
            wait_for_foreground(keys.split()[0])
        continue
    answer = read_until(terminal, awaited)
    if not awaited.endswith("$ $") and keys not in ("fg", "typed"):
        if not re.search(r"\$ $", answer):
            read_until(terminal, r"\$ $")
    if keys == "fg":
        wait_for_foreground("sleep")
    print(repr(keys), "as awaited")
_, status = os.waitpid(pid, 0)
print("the shell's exit status:", os.waitstatus_to_exitcode(status))
sys.exit(0 if os.waitstatus_to_exitcode(status) == 6 else 1)

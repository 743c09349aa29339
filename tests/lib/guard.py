#!/usr/bin/python3
"""Runs a command under a time limit, measures it, and shows where it stands if the limit is hit.

usage: guard.py --limit SECONDS --result FILE [--stdin F] [--stdout F] [--stderr F] [--cwd DIR] -- COMMAND...

FILE gets lines `key=value`: pid, status (the exit status, 128 + signal, or 124 for the limit), wall and cpu
in seconds, kernel_threads (the most seen in /proc while it ran). On a hang, every kernel thread of every
process of the command is described on standard error. Whatever the command leaves behind is killed by id.
"""
import argparse
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
libc = ctypes.CDLL(None)


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read().decode(errors="replace").strip()
    except OSError:
        return ""


def descendants():
    """Ids of all living processes below this one, parents first."""
    children = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        # The name in parentheses may hold anything; what follows it is: state ppid ...
        fields = read(f"/proc/{entry}/stat").rpartition(")")[2].split()
        if len(fields) > 1 and fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append(int(entry))
    found, todo = [], [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def describe(pid, out):
    status = dict(line.split(":", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":" in line)
    command = read(f"/proc/{pid}/cmdline").replace("\0", " ")
    print(f"--- process {pid}: {command}", file=out)
    print("    " + ", ".join(f"{k} {status.get(k, '?').strip()}" for k in
                             ("State", "Threads", "SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd")), file=out)
    try:
        tasks = sorted(os.listdir(f"/proc/{pid}/task"), key=int)
    except OSError:
        return
    for tid in tasks[:64]:
        base = f"/proc/{pid}/task/{tid}"
        fields = read(f"{base}/stat").rpartition(")")[2].split()
        where = read(f"{base}/stack").replace("\n", " < ")
        print(f"    {tid} {read(base + '/comm'):16} {fields[0] if fields else '?'} "
              f"utime {fields[11] if len(fields) > 12 else '?'} stime {fields[12] if len(fields) > 12 else '?'} "
              f"wchan {read(base + '/wchan')} syscall {read(base + '/syscall')} {where}", file=out)
    if len(tasks) > 64:
        print(f"    ... and {len(tasks) - 64} kernel threads more", file=out)
    gdb = shutil.which("gdb")
    if gdb:
        try:
            text = subprocess.run(
                [gdb, "-nx", "-batch", "-p", str(pid), "-ex", "set pagination off", "-ex",
                 "thread apply all -q bt 16"], stdin=subprocess.DEVNULL, capture_output=True, timeout=40).stdout
            lines = [l for l in text.decode(errors="replace").splitlines() if not l.startswith("[New LWP")]
            print("\n".join("    " + l for l in lines[:250]), file=out)
        except (subprocess.TimeoutExpired, OSError) as problem:
            print(f"    no backtrace: {problem}", file=out)


def kill_all():
    for _ in range(50):
        left = descendants()
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
        reap()


def reap():
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def in_child():
    os.setsid()
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # A caller that is somebody's background job ignores these, and would hand that on.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("--result", required=True)
    for stream in ("stdin", "stdout", "stderr"):
        parser.add_argument("--" + stream)
    parser.add_argument("--cwd")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()

    # Orphans of the command come to us, so that they can be found and ended.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    streams = [open(args.stdin or os.devnull, "rb"),
               open(args.stdout, "wb") if args.stdout else None,
               open(args.stderr, "wb") if args.stderr else None]
    signal.signal(signal.SIGTERM, lambda *_: (kill_all(), os._exit(143)))

    # SIGCHLD ends the sampling sleep at once: the wall time is exact.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    start = time.monotonic()
    child = subprocess.Popen(args.command, stdin=streams[0], stdout=streams[1], stderr=streams[2], cwd=args.cwd,
                             preexec_fn=lambda: (in_child(),
                                                 signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])))
    most, status, cpu = 1, None, 0.0
    while status is None:
        pid, raw, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            wall = time.monotonic() - start
            cpu = usage.ru_utime + usage.ru_stime
            status = os.WEXITSTATUS(raw) if os.WIFEXITED(raw) else 128 + os.WTERMSIG(raw)
            break
        if time.monotonic() - start > args.limit:
            wall, status = time.monotonic() - start, 124
            print(f"=== no end after {args.limit:.0f} s: {' '.join(args.command)}", file=sys.stderr)
            for process in descendants()[:4]:
                describe(process, sys.stderr)
            sys.stderr.flush()
            break
        for line in read(f"/proc/{child.pid}/status").splitlines():
            if line.startswith("Threads:"):
                most = max(most, int(line.split()[1]))
        signal.sigtimedwait([signal.SIGCHLD], 0.02)
    kill_all()
    with open(args.result, "w") as f:
        f.write(f"pid={child.pid}\nstatus={status}\nwall={wall:.3f}\ncpu={cpu:.3f}\nkernel_threads={most}\n")


main()

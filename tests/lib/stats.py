#!/usr/bin/python3
"""Checks the statistics that `upcall run --stats-file` wrote: did Upcall carry the program?

usage: stats.py --processors N --threads N|LEAST-MOST [--pid PID] [--observed N] [--few-kernel-threads]
                [--by-children N|N+] [--bound-by CALL,...] FILE...

One FILE per process. --by-children: the children of PID make N threads in all, or at least N. --bound-by: calls that may bind threads to kernel threads;
otherwise none may be bound. Prints a line `threads=N kernel=N unpatched=N:...` for the process PID (with --by-children for all), then a
line `problem: ...` for everything that is not as it should be; the exit status is 1 if there is any.
"""
import argparse
import collections
import json
import os
import sys

KEYS = ("pid", "program", "processors", "threads_created", "threads_peak", "bound_threads", "bound_reasons", "kernel_threads_peak",
        "activations_created", "helpers", "switches", "upcalls_processor_preempted", "steals",
        "futex_waits", "futex_wakes",
        "blocking_calls", "upcalls_activation_blocked", "upcalls_activation_unblocked", "take_over_latency_ns",
        "sites_candidates", "sites_patched", "sites_plain", "sites_unpatched", "unpatched")


def check_process(stats, args, problem):
    """What holds for every process, the program's children too."""
    missing = [key for key in KEYS if key not in stats]
    if missing:
        problem(f"statistics lack {', '.join(missing)}")
        return False
    # Processors beyond the first start with the first thread that is created.
    if stats["processors"] != args.processors and (stats["threads_created"] > 0 or stats["processors"] > args.processors):
        problem(f"{stats['processors']} processors instead of {args.processors}")
    reasons = stats["bound_reasons"]
    if stats["bound_threads"] != 0 and (not reasons or set(reasons) - set(args.bound_by.split(","))):
        problem(f"{stats['bound_threads']} bound threads (reasons: {reasons or 'none given'})")
    limit = stats["processors"] + stats["activations_created"] + stats["helpers"]
    if stats["kernel_threads_peak"] > limit:
        problem(f"{stats['kernel_threads_peak']} kernel threads at the peak: more than processors + activations + "
                f"helpers = {limit}")
    if stats["threads_created"] > 0 and stats["sites_patched"] <= 0:
        problem("no system call was substituted")
    if stats["sites_unpatched"] != len(stats["unpatched"]):
        problem(f"{stats['sites_unpatched']} sites unpatched, but {len(stats['unpatched'])} listed")
    for site in stats["unpatched"]:
        if not all(site.get(key) not in (None, "") for key in ("object", "offset", "nr", "reason")):
            problem(f"an unpatched site is listed without object, offset, nr or reason: {site}")
    return True


def check_main(stats, args, problem):
    """What holds for the process that the test started."""
    created = stats["threads_created"]
    least, _, most = args.threads.partition("-")
    if not int(least) <= created <= int(most or least):
        problem(f"{created} threads ran, but the program makes {args.threads}")
    if args.by_children and created == 0:
        return  # the runtime has not even started in it
    if stats["kernel_threads_peak"] < args.observed:
        problem(f"/proc showed {args.observed} kernel threads, the statistics know of {stats['kernel_threads_peak']}")
    # Threads that wait for each other in user space need no kernel thread each.
    few = stats["processors"] + stats["helpers"] + 16
    if args.few_kernel_threads and max(stats["kernel_threads_peak"], args.observed) > few:
        problem(f"{max(stats['kernel_threads_peak'], args.observed)} kernel threads for {created} threads: "
                f"at most {few} are right here")
    if created > 0 and stats["switches"] < created:
        problem(f"{stats['switches']} switches cannot have run {created} threads")
    if stats["threads_peak"] < 1 or stats["threads_peak"] > created + 1:
        problem(f"{stats['threads_peak']} threads at the peak of {created} created and the first one")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--processors", type=int, required=True)
    parser.add_argument("--threads", required=True)
    parser.add_argument("--pid", type=int, default=0)
    parser.add_argument("--observed", type=int, default=0)
    parser.add_argument("--few-kernel-threads", action="store_true")
    parser.add_argument("--by-children")
    parser.add_argument("--bound-by", default="")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()

    problems, processes = [], []
    for name in args.files:
        try:
            with open(name) as f:
                processes.append(json.load(f))
        except (OSError, ValueError) as error:
            problems.append(f"{os.path.basename(name)}: {error}")
    main_process = next((p for p in processes if p.get("pid") == args.pid), None)
    if main_process is None:
        problems.append(f"no statistics of process {args.pid}")
    for stats in processes:
        who = "" if stats is main_process else f"child {stats.get('pid')}: "
        whole = check_process(stats, args, lambda text: problems.append(who + text))
        if stats is main_process:
            if whole:
                check_main(stats, args, problems.append)
    shown = processes if args.by_children else [main_process] if main_process else []
    if args.by_children:
        made = sum(stats.get("threads_created", 0) for stats in processes if stats is not main_process)
        least = int(args.by_children.rstrip("+"))
        if made < least or (made > least and not args.by_children.endswith("+")):
            problems.append(f"the children ran {made} threads, but they make {args.by_children}")
    sites = {(os.path.basename(str(s.get("object"))), s.get("offset")) for p in shown for s in p.get("unpatched", [])}
    count = collections.Counter(name for name, _ in sites)
    print(f"threads={sum(p.get('threads_created', 0) for p in shown)} "
          f"kernel={max((p.get('kernel_threads_peak', 0) for p in shown), default=0)} unpatched="
          + ",".join(f"{name}:{n}" for name, n in sorted(count.items())))
    for text in problems:
        print("problem:", text)
    sys.exit(1 if problems else 0)


main()

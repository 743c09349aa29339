#!/usr/bin/python3
"""Checks the upcalls that `upcall run --stats-file FILE --log sched` counted and logged, against each other.

usage: events.py [--blocked LEAST,MOST] [--preempted LEAST] [--unseen LEAST] [--latency N,FROM,BELOW] STATS LOG

N take-overs at least have a latency of FROM to below BELOW nanoseconds (powers of two).

Prints `good`, or a line `problem: ...` for everything that is not as it should be, with exit status 1. The program must
have joined its threads. Of a log that has lost its beginning less can be said.
"""
import argparse
import collections
import json
import re
import sys

KINDS = ("add processor", "processor preempted", "activation blocked", "activation unblocked")
LINE = re.compile(r"upcall: event (\d+) at (\d+)\.(\d{9}) s: ([a-z ]+): processor (\d+), activation (\d+)(?:, thread (\d+))?$")
Event = collections.namedtuple("Event", "number time kind processor activation thread")

parser = argparse.ArgumentParser()
parser.add_argument("--blocked", default="1,1000000")
parser.add_argument("--preempted", type=int, default=0)
parser.add_argument("--unseen", type=int, default=0)
parser.add_argument("--latency", default="0,0,1")
parser.add_argument("stats")
parser.add_argument("log")
args = parser.parse_args()
problems = []

with open(args.stats) as file:
    stats = json.load(file)
events = []
whole = True
with open(args.log) as file:
    for line in file:
        if line.startswith("upcall: upcalls of process "):
            whole = ": the last " not in line
            continue
        if not line.startswith("upcall: event "):
            continue
        found = LINE.match(line)
        if not found:
            problems.append(f"not understood: {line.strip()}")
            continue
        number, seconds, ns, kind, processor, activation, thread = found.groups()
        events.append(Event(int(number), int(seconds) * 10**9 + int(ns), kind, int(processor), int(activation), int(thread or 0)))

logged = collections.Counter(event.kind for event in events)
counted = {kind: stats["upcalls_" + kind.replace(" ", "_")] for kind in KINDS}
if any(counted[kind] < logged[kind] or (whole and counted[kind] != logged[kind]) for kind in KINDS) or set(logged) - set(KINDS):
    problems.append(f"counted {counted}, logged {dict(logged)}")

# Numbers grow, the first processor comes first, and what happens to one activation happens in turn: it loses a processor,
# it comes back and finds that.
if any(later.number <= earlier.number for earlier, later in zip(events, events[1:])):
    problems.append("numbers do not grow")
if whole and (not events or events[0].kind != "add processor" or events[0].number != 1):
    problems.append("does not begin with a processor")
blocked = {}
seen = set()
whole_turns = whole
added = set() if whole else set(range(stats["processors"]))
previous = 0
for event in events:
    if event.number != previous + 1 and previous:  # left out, or on its way: may be of any activation
        seen.clear()
        blocked.clear()
        whole_turns = False
    previous = event.number
    if event.processor >= stats["processors"]:
        problems.append(f"event {event.number}: no such processor")
    if event.kind == "add processor":
        if event.processor in added:
            problems.append(f"event {event.number}: the processor was there")
        added.add(event.processor)
    elif event.processor not in added:
        problems.append(f"event {event.number}: the processor was not there")
    elif event.thread == 0:
        problems.append(f"event {event.number}: no thread")
    if event.kind == "activation blocked":
        if event.activation in blocked:
            problems.append(f"event {event.number}: activation {event.activation} was blocked already")
        blocked[event.activation] = event
    elif event.kind == "activation unblocked":
        cause = blocked.pop(event.activation, None)
        if not cause and (whole_turns or event.activation in seen):
            problems.append(f"event {event.number}: activation {event.activation} was not blocked")
        elif cause and ((cause.processor, cause.thread) != (event.processor, event.thread) or cause.time > event.time):
            problems.append(f"event {event.number} does not fit event {cause.number}")
    elif event.activation in blocked:
        problems.append(f"event {event.number}: activation {event.activation} is blocked")
    seen.add(event.activation)
for event in blocked.values():
    problems.append(f"event {event.number}: activation {event.activation} never came back")

latency = stats["take_over_latency_ns"]
# Another processor than the one where the program ends may be between the two.
if not 0 <= counted["activation blocked"] - sum(bucket["count"] for bucket in latency) < stats["processors"]:
    problems.append(f"{counted['activation blocked']} take-overs, but latencies {latency}")
for bucket in latency:
    begin = bucket["from"] or 1
    if bucket["count"] <= 0 or begin & (begin - 1) or bucket["below"] not in (2 * begin, None):
        problems.append(f"not a power of two: {bucket}")
least, most = map(int, args.blocked.split(","))
if not least <= counted["activation blocked"] <= most:
    problems.append(f"{counted['activation blocked']} take-overs, not {least} to {most}")
if counted["processor preempted"] < args.preempted:
    problems.append(f"{counted['processor preempted']} preempted, not at least {args.preempted}")
least, begin, end = map(int, args.latency.split(","))
within = sum(bucket["count"] for bucket in latency if bucket["from"] >= begin and (bucket["below"] or 1 << 63) <= end)
if within < least:
    problems.append(f"{within} latencies from {begin} to {end} ns, not {least}: {latency}")
unseen = stats["detached_by_sentinel"] + stats["detached_by_monitor"]
if unseen < args.unseen:
    problems.append(f"{unseen} found blocked unseen, not at least {args.unseen}")

for problem in problems:
    print("problem:", problem)
if problems:
    sys.exit(1)
print("good")

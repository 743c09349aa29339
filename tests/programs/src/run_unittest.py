"""Runs one of Python's own test modules and writes `outcome test-id` lines, sorted, to a file.

usage: run_unittest.py MODULE[-WORD] FILE [THREADS]

Tests whose names contain WORD are left out.
THREADS threads hand a token around meanwhile: what forks, does so beside them.
"""
import queue
import sys
import threading
import time
import unittest


class Outcomes(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.outcomes = {}

    def stopTest(self, test):
        self.outcomes.setdefault(test.id(), "ok")
        super().stopTest(test)

    def note(self, test, outcome):
        self.outcomes[test.id()] = outcome

    def addError(self, test, err):
        self.note(test, "error")
        super().addError(test, err)

    def addFailure(self, test, err):
        self.note(test, "failed")
        super().addFailure(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(test, "failed")
        super().addSubTest(test, subtest, err)

    def addSkip(self, test, reason):
        self.note(test, "skipped")
        super().addSkip(test, reason)

    def addExpectedFailure(self, test, err):
        self.note(test, "expected-failure")
        super().addExpectedFailure(test, err)


class Ring:
    """Threads that hand a number around and add one each; a few hundred times a second."""

    def __init__(self, size):
        self.queues = [queue.SimpleQueue() for _ in range(size)]
        self.turns = [0] * size
        self.last = 0
        self.threads = [threading.Thread(target=self.carry, args=(i,), daemon=True) for i in range(size)]
        for thread in self.threads:
            thread.start()
        self.queues[0].put(0)

    def carry(self, place):
        inbox, outbox = self.queues[place], self.queues[(place + 1) % len(self.queues)]
        while (token := inbox.get()) is not None:
            self.turns[place] += 1
            self.last = token + 1
            time.sleep(0.001)
            outbox.put(token + 1)
        outbox.put(None)

    def stop(self):
        # The rest of the ring hears of it from the one before.
        self.queues[0].put(None)
        for thread in self.threads:
            thread.join(30)
        alive = sum(thread.is_alive() for thread in self.threads)
        if alive or self.last < 3 or self.last != sum(self.turns):
            sys.exit(f"the ring of threads: {alive} did not end, {self.last} hand-overs, {self.turns}")


def tests_of(suite, word):
    """All tests, without those whose names contain the word."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            # The classes stay together, for what they set up for all their tests.
            yield unittest.TestSuite(tests_of(test, word))
        elif not word or word not in test.id():
            yield test


if __name__ == "__main__":
    ring = Ring(int(sys.argv[3])) if len(sys.argv) > 3 else None
    module, _, word = sys.argv[1].partition("-")
    suite = unittest.TestSuite(tests_of(unittest.defaultTestLoader.loadTestsFromName(module), word))
    result = unittest.TextTestRunner(resultclass=Outcomes, verbosity=2).run(suite)
    if ring:
        ring.stop()
    with open(sys.argv[2], "w") as f:
        for name, outcome in sorted(result.outcomes.items()):
            f.write(f"{outcome} {name}\n")
    # The caller compares outcomes; only a run without tests is an error in itself.
    sys.exit(0 if result.testsRun > 0 else 1)

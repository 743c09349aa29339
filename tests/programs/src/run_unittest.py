"""Runs one of Python's own test modules and writes `outcome test-id` lines, sorted, to a file.

usage: run_unittest.py MODULE FILE
"""
import sys
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


if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])
    result = unittest.TextTestRunner(resultclass=Outcomes, verbosity=2).run(suite)
    with open(sys.argv[2], "w") as f:
        for name, outcome in sorted(result.outcomes.items()):
            f.write(f"{outcome} {name}\n")
    # The caller compares outcomes; only a run without tests is an error in itself.
    sys.exit(0 if result.testsRun > 0 else 1)

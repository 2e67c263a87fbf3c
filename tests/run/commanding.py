"""Commands of tests, run in the process of the test."""

import math
import shlex
import sys
import time
from contextlib import closing

from foretune.run.commands import Command
from foretune.run.reports import DirectLine, TrialStart
from foretune.run.running_trial import RunningTrial


class Heard:
    """Keeps all reports of a trial, and asks it to stop at a step."""

    def __init__(self, stop_at=math.inf):
        self.reports, self.stop_at = [], stop_at

    def __call__(self, key, reports):
        self.reports += reports
        return reports[-1].step >= self.stop_at

    @property
    def points(self):
        return [(report.step, report.value) for report in self.reports]


def call(command, config=None, heard=None, start=None):
    """What a command makes of a configuration."""
    line = DirectLine(0, heard)
    with closing(RunningTrial(start or TrialStart(0), line, time.monotonic)) as trial:
        return command(config or {}, trial)


def python(program, *limits):
    """A command that runs a program of a few lines, without what Python imports for people."""
    return Command(f"{shlex.quote(sys.executable)} -SE -c {quote(program)}", *limits)


def quote(program):
    """The program as a word of a template."""
    return shlex.quote(program).replace("{", "{{").replace("}", "}}")

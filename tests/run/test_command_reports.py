"""Commands that report while they run, and that are asked to stop."""

import json
import math
import os
import time
from pathlib import Path

import pytest

from foretune.errors import ForetuneError
from foretune.experience import Status
from foretune.methods.stopping import StepRange, make_policy
from foretune.run.budget import Budget
from foretune.run.commands import Command, CommandLimits
from foretune.run.commands.reporting import MOST_LINE_BYTES, LineReader
from foretune.run.inline import InlineExecutor
from foretune.run.pool import ProcessPool
from foretune.run.reports import TrialStart
from foretune.run.running_trial import MOST_REPORTS
from foretune.run.tuning_loop import tune
from tests.refusals import refuses, warns
from tests.run.commanding import Heard, call, python, quote
from tests.run.test_pool import gone
from tests.run.test_tuning import memory, optimizer

QUICK = CommandLimits(grace_seconds=0.3)


def printing(*lines):
    """A command that prints lines."""
    return Command(f"printf %s {quote(os.linesep.join([*lines, '']))}")


def hear(command, **settings):
    """What a command returns, and the reports that it made."""
    heard = Heard()
    return call(command, heard=heard, **settings), heard.reports


def test_lines_with_a_step_are_reports_and_the_last_line_is_the_result():
    lines = ['{"step": 1, "loss": 0.5}', "epoch 1", '{"step": 2, "value": 0.4, "size": 3}', "0.4"]
    result, (first, second) = hear(printing(*lines))
    assert result == 0.4
    assert first[:3] == (1.0, None, {"loss": 0.5})
    assert second[:3] == (2.0, 0.4, {"size": 3.0})
    assert 0 <= first.seconds <= second.seconds


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ('{"step": 1, "value": 0.5, "size": 2}', 0.5),
        ('{"step": 1, "loss": 0.5, "size": 2}', {"loss": 0.5, "size": 2}),
    ],
)
def test_the_last_report_is_the_result_of_a_command_that_prints_no_other(line, result):
    assert hear(printing(line))[0] == result


def test_values_without_a_number_are_left_out_of_a_report():
    line = '{"step": 1, "value": 0.5, "split": "test", "all": [1], "ok": true, "none": null}'
    _, (report,) = hear(printing(line))
    assert report[:3] == (1.0, 0.5, {})


@pytest.mark.parametrize(
    "line",
    [
        "step 1: 0.5",
        '[{"step": 1}]',
        '{"a": {"step": 1}}',
        '{"step": 1, "value": 0.5',
        '"step"',
        '{"step": ' + "[" * 10_000,
    ],
)
def test_other_lines_are_no_reports(line):
    assert hear(printing(line, "7")) == (7, [])


@pytest.mark.parametrize(
    ("lines", "kept", "rule"),
    [
        (['{"step": 1, "value": 1}', '{"step": 1, "value": 2}'], 1, "steps-ascend"),
        (['{"step": 2, "value": 1}', '{"step": 1, "value": 2}'], 1, "steps-ascend"),
        (['{"step": 1, "value": 1}', '{"step": 2, "value": "0.5"}'], 1, "report-not-a-number"),
        (['{"step": "one", "value": 1}'], 0, "report-not-a-number"),
        (['{"step": null, "value": 1}'], 0, "report-not-a-number"),
        (['{"step": NaN, "value": 1}'], 0, "step-range"),
        (['{"step": -1, "value": 1}'], 0, "step-range"),
        (['{"step": 1}'], 0, "report-without-value"),
        (['{"step": 1, "loss": "low"}'], 0, "report-without-value"),
        (['{"step": 1, "value": 1, "text": "' + "x" * MOST_LINE_BYTES + '"}'], 0, None),
    ],
)
def test_a_bad_report_fails_its_trial_and_loses_no_report_before(lines, kept, rule, tmp_path):
    path = tmp_path / "lines"
    path.write_text("".join(f"{line}\n" for line in [*lines, "7"]))
    heard = Heard()
    with refuses(rule or "report-too-long", kind=ForetuneError):
        call(Command(f"cat {path}"), heard=heard)
    assert len(heard.reports) == kept


def test_values_of_commands_that_diverge_are_kept():
    lines = ['{"step": 1, "value": Infinity}', '{"step": 2, "value": NaN, "loss": -Infinity}', "1"]
    _, (first, second) = hear(printing(*lines))
    assert first.value == math.inf
    assert math.isnan(second.value)
    assert second.other_values == {"loss": -math.inf}


def test_a_last_line_without_an_end_is_read_and_half_of_one_is_not():
    whole = printing('{"step": 1, "value": 2}').template
    assert hear(Command(whole.replace("}\n", "}")))[1][0].value == 2
    half = printing('{"step": 1, "value": 2}', '{"step": 2, "value').template
    assert [r.step for r in hear(Command(half))[1]] == [1.0]


def test_bytes_that_are_no_text_spoil_no_number():
    command = python(r"""
import os
os.write(1, b'{"step": 1, "value": 0.5, "caf\xe9": 2, "t": "\xff"}' + b"\n\xff\xfe\n3\n")
""")
    result, (report,) = hear(command)
    assert (result, report.value) == (3, 0.5)
    assert list(report.other_values.values()) == [2.0]


def test_names_that_are_arguments_elsewhere_are_names_here():
    _, (report,) = hear(printing('{"step": 1, "self": 2, "trial": 3, "seconds": 4}'))
    assert report.other_values == {"self": 2.0, "trial": 3.0, "seconds": 4.0}


def test_a_flood_of_reports_is_thinned_and_the_last_one_is_kept():
    program = """
for n in range(20_001):
    print('{"step": %d, "value": 0.5}' % n)
"""
    with pytest.warns(match="has reported 5,000 times"):
        result, reports = hear(python(program))
    assert result == 0.5
    assert len(reports) < MOST_REPORTS
    assert [report.step for report in reports[-2:]] == [19_999, 20_000]


# The reader of lines


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_whole_however_the_output_comes(size):
    text, found = b"a\n\nbc\nlonger than that\nend", []
    reader = LineReader(found.append, most_bytes=8)
    for start in range(0, len(text), size):
        reader.add(text[start : start + size])
    reader.add(b"")
    assert [line[:9] for line in found] == [b"a", b"", b"bc", b"longer th", b"end"]


# What a command knows of itself

TELL = """
import json, os
names = ("FORETUNE_FOLDER", "FORETUNE_RESUMED_FROM")
print(json.dumps({name: os.environ[name] for name in names}))
open(os.environ["FORETUNE_FOLDER"] + "/checkpoint", "w").close()
"""


@pytest.mark.parametrize(
    ("step", "text"), [(None, ""), (3.0, "3"), (0.25, "0.25"), (1234567.0, "1234567")]
)
def test_the_folder_and_the_step_are_in_the_environment(step, text, tmp_path):
    folder = tmp_path / "trials" / "7"
    told, _ = hear(python(TELL), start=TrialStart(7, str(folder), step))
    assert told == {"FORETUNE_FOLDER": str(folder), "FORETUNE_RESUMED_FROM": text}
    assert (folder / "checkpoint").exists()


def test_a_folder_that_is_not_used_is_removed(tmp_path):
    hear(printing("1"), start=TrialStart(7, str(tmp_path / "7")))
    assert not (tmp_path / "7").exists()


def test_steps_that_were_reported_before_a_pause_are_not_reported_twice():
    lines = [json.dumps({"step": step, "value": 0.5}) for step in (1, 2, 3)]
    _, (report,) = hear(printing(*lines), start=TrialStart(7, resumed_from=2.0))
    assert report.step == 3


# Stops

ENDLESS = """
import os, signal, sys, time
def end(*_):
    open(os.environ["FORETUNE_FOLDER"] + "/checkpoint", "w").write("saved")
    {}
signal.signal(signal.SIGTERM, end)
for n in range(100_000):
    print('{{"step": %d, "value": 0.5}}' % n, flush=True)
    time.sleep(0.02)
"""


@pytest.mark.parametrize("way", ["sys.exit(0)", "sys.exit(7)", "print(8, flush=True); os._exit(1)"])
@pytest.mark.parametrize("shell", ["", "; true", " | cat"])
def test_a_command_is_asked_to_stop_and_may_save_what_it_has(way, shell, tmp_path):
    command = Command(python(ENDLESS.format(way)).template + shell)
    heard = Heard(stop_at=2)
    result = call(command, heard=heard, start=TrialStart(0, str(tmp_path)))
    assert result in (0.5, 8)
    assert len(heard.points) >= 3
    assert (tmp_path / "checkpoint").read_text() == "saved"


def test_a_program_that_a_script_runs_is_asked_to_stop_too(tmp_path):
    script = tmp_path / "train.sh"
    program = python(ENDLESS.format("sys.exit(0)")).template.replace("{{", "{").replace("}}", "}")
    script.write_text(f"#!/bin/sh\n{program}\necho done\n")
    script.chmod(0o755)
    call(Command(str(script)), heard=Heard(stop_at=2), start=TrialStart(0, str(tmp_path)))
    assert (tmp_path / "checkpoint").read_text() == "saved"


def test_a_command_that_does_not_know_of_signals_ends():
    lines = """echo '{{"step": 1, "value": 3}}'; sleep 600"""
    began = time.monotonic()
    assert call(Command(lines), heard=Heard(stop_at=1)) == 3
    assert time.monotonic() - began < 20


def test_a_command_that_ignores_the_request_is_killed_with_all_that_it_has_started(tmp_path):
    program = f"""
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "600"])
open({str(tmp_path / "pids")!r}, "w").write("%d %d" % (os.getpid(), child.pid))
print('{{"step": 1, "value": 3}}', flush=True)
time.sleep(600)
"""
    command = Command(python(program).template + "; true", QUICK)
    with warns("stop-ignored", value=0.3):
        assert call(command, heard=Heard(stop_at=1)) == 3
    assert all(gone(int(pid)) for pid in Path(tmp_path / "pids").read_text().split())


def test_a_stopped_command_needs_no_result():
    command = python("""
import os, signal, time
def end(*_):
    for _ in range(48):
        os.write(1, b"." * 65535 + b"\\n")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
print('{"step": 1, "value": 3}', flush=True)
time.sleep(600)
""")
    assert call(command, heard=Heard(stop_at=1)) is None


def test_a_command_in_a_worker_reports_and_is_asked_to_stop(tmp_path):
    heard = Heard(stop_at=2)
    with ProcessPool(python(ENDLESS.format("sys.exit(0)"))) as pool:
        pool.listen(heard)
        pool.submit({}, TrialStart(0, str(tmp_path)))
        (outcome,) = pool.results()
    assert (outcome.status, outcome.facts.saw_stop) == (Status.DONE, True)
    assert heard.points[:2] == [(0.0, 0.5), (1.0, 0.5)]
    assert (tmp_path / "checkpoint").exists()


TRAINING = """
import json, os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
x = json.loads(os.environ["FORETUNE_CONFIG"])["x"]
checkpoint = os.environ["FORETUNE_FOLDER"] + "/step"
done = int(open(checkpoint).read()) if os.path.exists(checkpoint) else 0
for step in range(done + 1, 10):
    print(json.dumps({"step": step, "error": x + 1 / step, "size": step}), flush=True)
    open(checkpoint + ".new", "w").write(str(step))
    os.rename(checkpoint + ".new", checkpoint)
    time.sleep(0.05)
"""


# It may be stopped between a report and its checkpoint, so that it takes this step again.
@pytest.mark.filterwarnings("ignore:trial .* was to go on after step")
def test_a_policy_pauses_and_resumes_commands():
    """Each step is stored once, and the last report of a complete command is its result."""
    study, asha = memory(), make_policy("asha", StepRange(1, 9, 3))
    with InlineExecutor(python(TRAINING)) as executor:
        tune(study, optimizer(), executor, Budget(9), stop=asha)
    trials = study.trials()
    assert {trial.status for trial in trials} == {Status.DONE, Status.PAUSED}
    for trial in trials:
        x, steps = trial.config["x"], range(1, int(trial.last_step) + 1)
        assert list(trial.curve.steps) == list(steps)
        assert trial.curve.values["error"] == pytest.approx([x + 1 / step for step in steps])
        assert trial.last_step == 9 or trial.status is Status.PAUSED
    done = [trial for trial in trials if trial.status is Status.DONE]
    assert [trial.values["error"] for trial in done] == [t.config["x"] + 1 / 9 for t in done]


def test_a_bad_report_ends_a_command_that_would_go_on():
    command = Command("""echo '{{"step": 1}}'; sleep 600""")
    with refuses("report-without-value", kind=ForetuneError):
        call(command, heard=Heard())

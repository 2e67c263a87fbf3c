import math
import socket
import warnings
from pathlib import Path

import pytest

from foretune.errors import ForetuneWarning
from foretune.experience import Status
from foretune.run.channel import ForeignMessageError, WorkerEnd
from foretune.run.inline import InlineExecutor
from foretune.run.pool import ProcessPool
from foretune.run.report_channel import ReportInbox, ReportOutbox
from foretune.run.reports import DirectLine, Report, ReportError, TrialStart
from foretune.run.running_trial import MOST_REPORTS, RunningTrial
from tests.refusals import refuses
from tests.run import reporting

both = pytest.mark.parametrize("make", [InlineExecutor, ProcessPool], ids=["inline", "processes"])


class Heard:
    """Keeps all reports, and asks each trial to stop at a step."""

    def __init__(self, stop_at=math.inf):
        self.reports, self.stop_at = {}, stop_at

    def __call__(self, key, reports):
        self.reports.setdefault(key, []).extend(reports)
        return any(report.step == self.stop_at for report in reports)

    def points(self, key=0):
        return [(report.step, report.value) for report in self.reports.get(key, [])]


def run(make, function, *jobs, heard=None, starts=None, **settings):
    """The outcomes of jobs, in order, and what was heard."""
    heard = heard or Heard()
    with make(function, **settings) as executor:
        executor.listen(heard)
        starts = starts or [None] * len(jobs)
        keys = [executor.submit(*each) for each in zip(jobs, starts, strict=True)]
        found = {}
        while batch := executor.results():
            found.update({outcome.key: outcome for outcome in batch})
    return [found[key] for key in keys], heard


@both
def test_reports_arrive_in_order_with_all_their_values(make):
    (first, second), heard = run(make, reporting.losses, 4, 2)
    assert (first.result, second.result) == (4, 2)
    assert heard.points(0) == [(1.0, 1.0), (2.0, 0.5), (3.0, 1 / 3), (4.0, 0.25)]
    assert heard.points(1) == [(1.0, 1.0), (2.0, 0.5)]
    assert [report.other_values for report in heard.reports[1]] == [{"size": 1.0}, {"size": 2.0}]
    seconds = [report.seconds for report in heard.reports[0]]
    assert seconds == sorted(seconds)
    assert 0 <= seconds[0] <= seconds[-1] <= first.seconds + 1.0


@both
def test_a_trial_ends_itself_when_it_is_asked_to_and_the_next_one_is_not_asked(make):
    (stopped, small), heard = run(make, reporting.losses, 10**6, 2, heard=Heard(stop_at=3))
    # Where the parent is busy the answer comes later, at one of the next steps.
    assert stopped.status is Status.DONE
    assert 3 <= stopped.result < 10**6
    assert len(heard.points(0)) >= 3
    assert small.result == 2
    assert [outcome.facts.saw_stop for outcome in (stopped, small)] == [True, False]


def test_a_trial_can_be_asked_to_stop_though_it_reports_nothing_new():
    heard = Heard()
    with ProcessPool(reporting.wait_for_stop) as pool:
        pool.listen(heard)
        key = pool.submit(None)
        while not heard.reports:
            assert pool.results(timeout=0.05) == []
        pool.ask_to_stop(key)
        (outcome,) = pool.results()
    assert (outcome.result, outcome.facts.saw_stop) == ("stopped", True)


@both
def test_nobody_has_to_listen(make):
    with make(reporting.losses) as executor:
        executor.submit(3)
        (outcome,) = executor.results()
    assert outcome.result == 3


@both
@pytest.mark.parametrize(
    ("points", "kept", "said"),
    [
        ([(1, 0.5), (1, 0.4)], 1, "ReportError: the steps of a trial must ascend"),
        ([(2, 0.5), (1, 0.4)], 1, "ReportError: the steps of a trial must ascend"),
        ([(1, "0.5")], 0, "ReportError: a report must hold numbers, but 'value' is '0.5'"),
        ([("one", 0.5)], 0, "ReportError: a report must hold numbers, but 'step' is 'one'"),
        ([(math.nan, 0.5)], 0, "ReportError: a step must be a finite number"),
        ([(-1, 0.5)], 0, "ReportError: a step must be a finite number and not below 0"),
        ([(1, None)], 0, "ReportError: a report needs a value"),
    ],
)  # fmt: skip
def test_a_bad_report_fails_its_trial_only(make, points, kept, said):
    (bad, good), heard = run(make, reporting.report, points, [(1, 0.5)])
    assert (bad.status, bad.reason[: len(said)]) == (Status.FAILED, said)
    assert len(heard.points(0)) == kept
    assert (good.status, heard.points(1)) == (Status.DONE, [(1.0, 0.5)])


@both
def test_values_of_trials_that_diverge_are_kept(make):
    _, heard = run(make, reporting.report, [(1, math.inf), (2, -math.inf), (3, math.nan)])
    values = [value for _, value in heard.points()]
    assert values[:2] == [math.inf, -math.inf]
    assert math.isnan(values[2])


@both
def test_after_a_resume_old_steps_may_come_again_and_are_not_sent_again(make):
    start = TrialStart(7, resumed_from=2.0)
    points = [(1, 0.3), (2, 0.2), (3, 0.1)]
    (again,), heard = run(make, reporting.report, points, starts=[start])
    assert (again.status, heard.points()) == (Status.DONE, [(3.0, 0.1)])
    assert again.facts.repeated_reports == 2
    (backwards,), heard = run(make, reporting.report, [(2, 0.2), (1, 0.3)], starts=[start])
    assert (backwards.status, heard.points()) == (Status.FAILED, [])


@both
@pytest.mark.parametrize(
    ("function", "points", "result", "kept"),
    [
        (reporting.yield_all, [(1, 0.5), (2, 0.4)], 0.4, [(1.0, 0.5), (2.0, 0.4)]),
        (reporting.yield_all, [(1, {"size": 3.0})], {"size": 3.0}, [(1.0, None)]),
        (reporting.yield_and_return, [(1, 0.5)], "end", [(1.0, 0.5)]),
        (reporting.yield_all, [], None, []),
    ],
)
def test_a_generator_reports_what_it_yields(make, function, points, result, kept):
    (outcome,), heard = run(make, function, points)
    assert (outcome.status, outcome.result, heard.points()) == (Status.DONE, result, kept)


def test_a_generator_is_closed_when_the_trial_is_to_stop():
    points = [(1, 0.5), (2, 0.4), (3, 0.3)]
    (outcome,), heard = run(
        InlineExecutor, reporting.yield_and_return, points, heard=Heard(stop_at=2)
    )
    assert (outcome.result, heard.points()) == (0.4, [(1.0, 0.5), (2.0, 0.4)])


@both
def test_a_generator_that_yields_something_else_fails(make):
    (outcome,), _ = run(make, reporting.yield_all, [0.5])
    assert (outcome.status, "must yield (step, value)" in outcome.reason) == (Status.FAILED, True)


def test_reports_of_a_trial_that_dies_are_not_lost():
    (dead, alive), heard = run(ProcessPool, reporting.die_after_reports, 50, 50)
    assert [dead.status, alive.status] == [Status.FAILED] * 2
    assert heard.points(0) == heard.points(1) == [(float(n), float(n)) for n in range(50)]


def test_a_copy_of_the_process_cannot_report():
    (outcome,), heard = run(ProcessPool, reporting.report_from_fork, None)
    assert (outcome.result, heard.points()) == (7, [(1.0, 1.0)])


def test_a_thread_that_outlives_its_trial_cannot_report():
    outcomes, heard = run(ProcessPool, reporting.LateReports(), "first", "last")
    assert [outcome.result for outcome in outcomes] == [
        [],
        ["report-after-end", "accepted"],
    ]
    assert list(heard.reports) == [1]


@both
def test_a_folder_that_is_given_lasts_and_another_one_does_not(make, tmp_path):
    starts = [TrialStart(7, str(tmp_path / "a" / "7"), 3.0), None]
    (lasting, temporary), _ = run(make, reporting.where, None, None, starts=starts)
    assert lasting.result == (str(tmp_path / "a" / "7"), 7, 3.0)
    assert (tmp_path / "a" / "7" / "checkpoint").read_text() == "x"
    folder, number, resumed_from = temporary.result
    assert (number, resumed_from) == (1, None)
    assert not Path(folder).exists()


@both
def test_a_second_argument_with_a_default_is_no_trial_unless_it_is_called_so(make):
    assert run(make, reporting.with_seed, 1)[0][0].result == (1, 5)
    assert run(make, reporting.with_optional_trial, 1)[0][0].result is True


@both
def test_errors_of_the_listener_do_not_reach_the_trial(make):
    def break_down(key, reports):
        raise KeyError(key)

    with make(reporting.losses) as executor:
        executor.listen(break_down)
        executor.submit(3)
        with pytest.raises(KeyError):
            executor.results()


# Very many reports


def test_a_flood_is_thinned_and_its_last_report_is_kept():
    heard = Heard()
    line = DirectLine(0, heard)
    trial = RunningTrial(TrialStart(0), line, float)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for step in range(100_001):
            trial.report(step, 0.0)
    trial.close()
    steps = [report.step for report in heard.reports[0]]
    assert [each.message.rule for each in said] == ["many-reports"]
    assert issubclass(said[0].category, ForetuneWarning)
    # The first 5,000; 500 with each of the gaps 2, 4, ..., 64, up to report 68,000; with the gap
    # 128 another 250, up to report 100,000; and the last one.
    assert steps[:5000] == list(range(5000))
    assert len(steps) == 5000 + 6 * 500 + 250 + 1 < MOST_REPORTS
    assert steps[-2:] == [99_999, 100_000]


def test_a_flood_through_a_worker_arrives_thinned():
    (outcome,), heard = run(ProcessPool, reporting.flood, 20_000)
    steps = [step for step, _ in heard.points()]
    assert outcome.result == 20_000
    assert steps == sorted(set(steps))
    assert (steps[:5000], steps[-1]) == ([float(n) for n in range(5000)], 19_999.0)


# The channel


@pytest.fixture
def ends():
    inbox = ReportInbox()
    channel, shared = (socket.dup(each) for each in inbox.descriptors)
    outbox = ReportOutbox(channel, shared)
    inbox.hand_over()
    yield inbox, outbox
    inbox.close()
    WorkerEnd(channel).close()


KEY, OTHER = b"k" * 16, b"o" * 16
REPORT = Report(1.0, 0.5, {"size": 2.0}, 0.25)


def test_a_stop_holds_until_the_job_ends(ends):
    inbox, outbox = ends
    outbox.begin(KEY, is_heard=True)
    outbox.send(REPORT)
    assert not outbox.stop_asked()  # nobody has answered in time
    assert list(inbox.read(KEY)) == [REPORT]
    inbox.answer(1, stop=True)
    inbox.answer(1, stop=False)
    assert outbox.stop_asked()
    inbox.begin()
    outbox.begin(OTHER, is_heard=True)
    assert not outbox.stop_asked()


def test_a_report_of_another_job_is_refused(ends):
    inbox, outbox = ends
    outbox.begin(OTHER, is_heard=True)
    outbox.send(REPORT)
    with pytest.raises(ForeignMessageError):
        list(inbox.read(KEY))


def test_a_report_that_is_too_long_is_refused(ends):
    _, outbox = ends
    outbox.begin(KEY, is_heard=True)
    with refuses("report-too-long", kind=ReportError):
        outbox.send(REPORT._replace(other_values={"x" * 2**18: 1.0}))

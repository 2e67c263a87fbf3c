import os
import signal
import subprocess
import sys
import time
import weakref
from contextlib import contextmanager

import pytest

from foretune.run import stopping
from foretune.run.inline import InlineExecutor
from foretune.run.tuning_loop import Budget, tune
from tests.run.test_tuning import bowl, memory, optimizer

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="Windows ends processes without a word"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NUMBERS = [getattr(signal, name, None) for name in stopping.SIGNALS]


@pytest.fixture(autouse=True)
def _listening():
    """Listening as a command does, with what a process begins with."""
    hook = sys.unraisablehook
    before = {number: signal.getsignal(number) for number in (*NUMBERS, signal.SIGALRM)}
    for number in before:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, usual)
    stopping.listen()
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    stopping._Request.made = False
    sys.unraisablehook = hook
    for number, handler in before.items():
        signal.signal(number, handler)


def ask(number=signal.SIGTERM):
    signal.raise_signal(number)


def ask_where_exceptions_are_lost(number=signal.SIGTERM):
    class Referred:
        pass

    referred = Referred()
    reference = weakref.ref(referred, lambda _: ask(number))
    del referred
    assert reference() is None


def asked_at_first(how):
    """The bowl, and a request to stop during the first call."""
    calls = []

    def function(config):
        calls.append(config)
        if len(calls) == 1:
            how()
        return bowl(config)

    return function


@pytest.mark.parametrize("number", NUMBERS)
def test_a_request_whose_exception_is_lost_stops_the_tuning_at_its_next_turn(number):
    study = memory()
    function = asked_at_first(lambda: ask_where_exceptions_are_lost(number))
    with pytest.raises(KeyboardInterrupt):
        tune(study, optimizer(), InlineExecutor(function), Budget(5))
    assert [trial.is_over for trial in study.trials()] == [True]


def test_a_request_that_is_lost_before_the_tuning_stops_it_at_once():
    ask_where_exceptions_are_lost()
    study = memory()
    with pytest.raises(KeyboardInterrupt):
        tune(study, optimizer(), InlineExecutor(bowl), Budget(5))
    assert study.trials() == []


@pytest.mark.parametrize("how", [ask, ask_where_exceptions_are_lost])
def test_a_request_stops_one_tuning_and_no_later_one(how):
    study = memory()
    with pytest.raises(KeyboardInterrupt):
        tune(study, optimizer(), InlineExecutor(asked_at_first(how)), Budget(5))
    assert tune(study, optimizer(), InlineExecutor(bowl), Budget(5)) == "trials"


def test_a_request_whose_exception_is_lost_is_made_again_wherever_that_is(capfd):
    """Not only where a loop looks for it, and without a word of Python about what it dropped."""
    ask_where_exceptions_are_lost()
    with pytest.raises(KeyboardInterrupt):
        time.sleep(30.0)
    assert capfd.readouterr().err == ""


def test_a_request_that_was_heeded_is_not_made_again():
    ask_where_exceptions_are_lost()
    with pytest.raises(KeyboardInterrupt), stopping.absorb_requests():
        stopping.check()
    time.sleep(3 * stopping.AGAIN_SECONDS)


@pytest.mark.parametrize("noticed", [stopping.check, ask])
def test_a_request_that_was_noticed_meanwhile_is_not_made_again_while_it_is_heeded(noticed):
    """Else what lets trials go would be stopped as by a second Ctrl-C, which nobody has pressed."""
    ask_where_exceptions_are_lost()
    let_go = []

    @contextmanager
    def letting_go():
        try:
            yield
        finally:
            time.sleep(3 * stopping.AGAIN_SECONDS)
            let_go.append(True)

    with pytest.raises(KeyboardInterrupt), stopping.absorb_requests(), letting_go():
        noticed()
    assert let_go == [True]


def test_a_second_request_that_is_lost_as_the_first_was_is_made_again():
    ask_where_exceptions_are_lost()
    ask_where_exceptions_are_lost()
    with pytest.raises(KeyboardInterrupt):
        time.sleep(30.0)


def test_an_alarm_that_others_have_set_ends_the_process_as_ever():
    """As in  perl -e 'alarm 600; exec @ARGV' foretune ...,  where there is no other timeout."""
    program = "from foretune.run import stopping; import time; stopping.listen(); time.sleep(30)"
    alarmed = f"import signal; signal.alarm(1); {program}"
    ended = subprocess.run([sys.executable, "-c", alarmed], check=False)
    assert ended.returncode == -signal.SIGALRM


def test_a_handler_of_alarms_that_others_have_is_left_alone():
    """Then Python tells of what it drops, and loops look for the request."""
    heard, alarms = [], []
    sys.unraisablehook = heard.append
    stopping.listen()
    signal.signal(signal.SIGALRM, lambda *_: alarms.append(True))
    ask_where_exceptions_are_lost()
    time.sleep(3 * stopping.AGAIN_SECONDS)
    assert [what.exc_type for what in heard] == [KeyboardInterrupt]
    assert alarms == []


def test_a_missed_request_to_stop_arrives_at_the_end():
    def miss_it():
        ask_where_exceptions_are_lost()
        signal.setitimer(signal.ITIMER_REAL, 0.0)  # this is over before the exception comes again

    with pytest.raises(KeyboardInterrupt), stopping.absorb_requests():
        miss_it()
    stopping.check()


def test_python_tells_of_other_exceptions_that_it_drops():
    heard = []
    sys.unraisablehook = lambda what: heard.append(what.exc_type)
    stopping.listen()

    class Spoilt:
        def __del__(self):
            raise ValueError

    Spoilt()
    assert heard == [ValueError]


def test_no_alarm_is_left_for_the_end_of_python():
    ending = """
import atexit, signal, weakref
from foretune.run import stopping

class Referred:
    pass

atexit.register(lambda: print(signal.getitimer(signal.ITIMER_REAL)[0]))  # the last one to be called
stopping.listen()
referred = Referred()
reference = weakref.ref(referred, lambda _: signal.raise_signal(signal.SIGTERM))
del referred
print(signal.getitimer(signal.ITIMER_REAL)[0] > 0)
"""
    ended = subprocess.run(
        [sys.executable, "-c", ending], check=True, capture_output=True, text=True
    )
    assert ended.stdout.split() == ["True", "0.0"]


def test_a_request_that_interrupts_sqlalchemy_is_not_logged_as_an_error():
    """SQLAlchemy logs what interrupts the reset of a connection, with a traceback."""
    pytest.importorskip("sqlalchemy")
    program = """
import signal
from sqlalchemy import create_engine, event
from foretune.run import stopping

stopping.listen()
engine = create_engine("sqlite://")
event.listen(engine, "reset", lambda *_: signal.raise_signal(signal.SIGINT))
try:
    engine.connect().close()
except KeyboardInterrupt:
    print("stopped")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert (ended.stdout, ended.stderr) == ("stopped\n", "")


MAIN = "from foretune.__main__ import main; main()"
ENTRY = "import atexit, signal, sys; sys.argv = ['foretune', '--version']"


def test_ctrl_c_ends_a_command_that_is_being_loaded_without_a_traceback(tmp_path):
    (tmp_path / "click.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    program = f"{ENTRY}; sys.path.insert(0, {str(tmp_path)!r})\n{MAIN}"
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_ends_a_command_that_is_done_without_a_traceback(number):
    ask_late = f"atexit.register(lambda: signal.raise_signal({int(number)}))"
    program = f"{ENTRY}; {ask_late}\n{MAIN}"
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (ended.returncode, ended.stderr) == (-number, b"")

import json
import os
import shlex
import sys
import time

import pytest

from foretune.errors import UsageError
from foretune.run.commands import Command, CommandError, CommandLimits
from foretune.space import Space
from tests.refusals import refuses
from tests.run.commanding import call, python

SPACE = Space.of(
    {
        "lr": (0.1, 1.0),
        "depth": (1, 9),
        "model": {"svm": {"C": (1, 9)}, "naive": {}},
        "text": ["it's", "$(touch canary)"],
        "digits": ["0.1", "-2e5"],
    }
)
NUMBERS = [0.1, 1e-05, 7, -3]


def words(template, config):
    start = Command(template).start(config)
    assert start.variables == {}
    return start.arguments


@pytest.mark.parametrize(
    ("template", "config", "arguments"),
    [
        ("run --lr {lr}", {"lr": 0.1}, ["run", "--lr", "0.1"]),
        ("run --lr={lr} '{{x}}'", {"lr": 0.1}, ["run", "--lr=0.1", "{x}"]),
        ("run {lr}", {"lr": "a b; rm *"}, ["run", "a b; rm *"]),
        ("run '{lr}' \"{lr}\"", {"lr": "a' \"b"}, ["run", "a' \"b", "a' \"b"]),
        ("run -C {model:svm:C}", {"model:svm:C": 2}, ["run", "-C", "2"]),
        ("run --depth {depth} -v", {}, ["run", "-v"]),
        ("run --depth={depth} -v", {}, ["run", "-v"]),
        ("run {depth} -v", {}, ["run", "-v"]),
        ("run -d {depth} --lr {lr}", {"lr": 1}, ["run", "--lr", "1"]),
        ("run --verbose --set=x:{depth} {lr}", {"lr": 1}, ["run", "1"]),
        ("run -d {depth} -e {depth}", {}, ["run"]),
        ("run --lr -1 {depth}", {}, ["run", "--lr", "-1"]),
        ('run --x "{depth} {lr}" -v', {"lr": 1}, ["run", "-v"]),
        ('run --x "a \\" {depth}" -v', {"lr": 1}, ["run", "-v"]),
        ("run --x a\\ {depth} -v", {"lr": 1}, ["run", "-v"]),
        ('run "-a b" {depth} -v', {"lr": 1}, ["run", "-a b", "-v"]),
        ("run --depth \\\n {depth} -v", {"lr": 1}, ["run", "-v"]),
        ("run '' \"\" a\\\nb '\n'", {}, ["run", "", "", "ab", "\n"]),
    ],
)
def test_a_command_without_shell_syntax_is_a_list_of_arguments(template, config, arguments):
    assert words(template, config) == arguments


@pytest.mark.parametrize(
    "template",
    [
        "a 'b c' \"d e\"",
        'a \\" \\\\ "\\" \\\\ \\n"',
        "a'b'\"c\" '\"' \"'\"",
        "  a\tb  ",
        "a x=1 b#c",
    ],
)
def test_words_are_split_as_posix_has_it(template):
    assert words(template, {}) == shlex.split(template)


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("run --depth {depth}; echo {lr}", 'run ; echo "${FORETUNE_VALUE_1}" '),
        ("run --depth {depth}|tail -n {lr}", 'run | tail -n "${FORETUNE_VALUE_1}" '),
        ("run {depth}&& echo {lr}", 'run && echo "${FORETUNE_VALUE_1}" '),
        ("run --depth {depth}\nrun {lr}", 'run \n run "${FORETUNE_VALUE_1}" '),
        ("run > log-{depth}.txt", "run "),
        ("run >log-{depth}.txt -v $HOME", "run -v ${HOME} "),
        ("run 2>>log-{depth}.txt *.csv", "run *.csv "),
        ("run > log.txt --depth {depth}", "run >log.txt "),
        ("run 2>&1 {lr}>x", 'run 2>&1 "${FORETUNE_VALUE_1}" >x '),
        ("A=1 run 'b c'\"$X\"", "A=1 run 'b c'\"${X}\" "),
    ],
)
def test_a_command_for_the_shell_holds_variables_for_values(template, line):
    start = Command(template).start({"lr": "$(pwd)"})
    assert start.arguments == ["/bin/sh", "-c", line]
    assert set(start.variables.values()) <= {"$(pwd)"}


@pytest.mark.parametrize("value", ["a b", "it's", "$HOME `pwd` $(pwd)", "\\n \\", "*", "", "-n"])
@pytest.mark.parametrize("end", ["", " | cat", "; true"])
def test_values_reach_the_program_as_they_are(value, end):
    program = "import json, sys; print(json.dumps({'x': sys.argv[1:]}))"
    place = f"{sys.executable} -c {shlex.quote(program).replace('{', '{{').replace('}', '}}')}"
    command = Command(place + " {text} 'a{text}' \"{text} b\"" + end)
    command.check(Space.of({"text": ["x y", value]}))
    assert call(command, {"text": value}) == {"x": [value, f"a{value}", f"{value} b"]}


REFUSED = [
    "# it's a comment\necho {text}",
    "echo `echo '{text}'`",
    "cat <<EOF\n{text}\nEOF",
    'run "$(echo {text})"',
    "run $(echo {text})",
    'sh -c "echo {text}"',
    "bash -o pipefail -c 'run {text}'",
    "timeout -s KILL 5 sh -c 'run {text}'",
    "eval {text}",
    "\\eval {text}",
    "echo {text} | sh",
    "echo {text} > f.sh; sh ./f.sh",
    "X={text}; $X",
    "$X {text}",
    "[[ {text} -eq 1 ]]",
    "test -v {text}",
    "echo $(( {text} ))",
    "{text} x",
    "run > {text}",
    "python -c 'print({text})'",
    "awk {text}",
    "run {text} # comment",
    "if true; then run {text}; fi",
    "run {text} &",
]


@pytest.mark.parametrize("template", REFUSED)
def test_a_text_is_refused_where_somebody_may_run_it(template):
    with refuses("number-place", field="text"):
        Command(template).check(SPACE)
    with refuses("number-place", kind=CommandError):
        Command(template).start({"text": "$(touch canary)"})


@pytest.mark.parametrize("template", REFUSED)
def test_numbers_are_allowed_everywhere(template):
    for name in ("lr", "depth", "digits"):
        command = Command(template.replace("text", name))
        command.check(SPACE)
        for number in NUMBERS:
            command.start({name: number})


@pytest.mark.parametrize("wrong", ["1\n", "1 2", "$(x)", "٣", "inf", "True", "1;2", ""])
def test_texts_that_only_look_like_numbers_stay_texts(wrong):
    with refuses("number-place", kind=CommandError):
        Command("echo `{lr}`").start({"lr": wrong})


def test_numbers_stand_in_templates_that_only_a_shell_can_read():
    command = Command("for i in 1 2; do echo $((i * {depth})); done # it's {lr}")
    command.check(SPACE)
    assert call(command, {"depth": 21, "lr": 0.5}) == 42


@pytest.mark.parametrize(
    "template",
    [
        "cd dir && python train.py --lr {lr} --text {text} > log.txt; tail -1 log.txt",
        "python train.py --text={text} | awk '{{print $2}}'",
        "sh -c 'python train.py \"$1\"' x {text}",
        "env TEXT={text} python train.py {text}",
        "svm-train -c {text}",
        "python -u -c 'import train' {text} > log-{lr}.txt 2>&1",
        "nice -n {depth} python train.py {text}",
    ],
)
def test_numbers_as_people_write_them_are_accepted(template):
    Command(template).check(SPACE)


def test_unknown_placeholders_are_refused():
    Command("run {lr} {depth} {model:svm:C} '{{any}}'").check(SPACE)
    with refuses("unknown-placeholder", field="rate"):
        Command("run {rate}").check(SPACE)


@pytest.mark.parametrize(
    ("template", "rule"),
    [
        ("  ", "empty-command"),
        ("run \0", "null-character"),
        ("echo $(run {model:svm:C})", "inactive-placeholder"),
        ("echo `run`; run {lr}>x", "placeholder-before-arrow"),
    ],
)
def test_templates_that_cannot_work_are_refused(template, rule):
    with refuses(rule, kind=UsageError):
        Command(template).check(SPACE)


@pytest.mark.parametrize(
    ("value", "rule"), [("a\0b", "null-character"), ("\ud800", "half-character")]
)
def test_values_that_no_program_can_get_are_refused(value, rule):
    with refuses(rule, field="lr", kind=CommandError):
        Command("run {lr}").start({"lr": value})


@pytest.mark.parametrize(
    ("printed", "result"),
    [
        ("0.25", 0.25),
        ("1\nepoch 2\n", 1),
        ('{"loss": 0.5, "size": 3}\n[1]\n"text"\ntrue\ndone', {"loss": 0.5, "size": 3}),
        ("1\n2\n\n", 2),
        ("3\n" + "[" * 100_000, 3),
    ],
)
def test_the_last_json_line_is_the_result(printed, result):
    assert call(python(f"print({printed!r})")) == result


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (python("raise ValueError('too  bad')"), "exit code 1: ValueError: too  bad"),
        (python("import sys; sys.exit(3)"), "exit code 3"),
        (python("import os; os.kill(os.getpid(), 9)"), "killed by signal 9"),
        (python("print('no number')"), "it printed no line that is a JSON number or object"),
        (Command("no-such-program 1"), "'no-such-program' cannot be started: No such file or "
                                       "directory"),
    ],
)  # fmt: skip
def test_failures_say_why(command, reason):
    with pytest.raises(CommandError) as failed:
        call(command)
    assert str(failed.value).endswith(reason)


def test_a_value_that_is_too_long_for_the_system_fails_with_the_reason():
    with refuses("not-started", kind=CommandError):
        call(Command("true x{lr}; true"), {"lr": "x" * 300_000})


def test_the_whole_configuration_is_in_the_environment():
    config = {"lr": 0.1, "mode": None, "on": True}
    command = python("import os; print(os.environ['FORETUNE_CONFIG'])")
    assert call(command, config) == json.loads(json.dumps(config))


FLOOD = "import sys; [sys.{}.write('x' * 65535 + chr(10)) for _ in range(1600)]; print(7)"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_only_the_end_of_long_output_is_kept(stream):
    # In a process of its own, whose memory shows what was kept of 100 MB.
    program = (
        "import resource, sys; from foretune.run.commands import Command; "
        "from tests.run.commanding import call; "
        "print(call(Command(sys.argv[1])), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    flood = python(FLOOD.format(stream)).template
    told = os.popen(shlex.join([sys.executable, "-c", program, flood])).read().split()
    assert told[0] == "7"
    assert int(told[1]) < 80 * 1024  # in KB


def test_a_failure_says_that_output_was_cut():
    with pytest.raises(CommandError, match=r"no line .*only the last 1024 KB of 100 MB"):
        call(python(FLOOD.format("stdout").replace("print(7)", "print()")))
    with pytest.raises(CommandError, match=r"exit code 2 \(only the last 64 KB of 100 MB .*: end"):
        call(python(FLOOD.format("stderr").replace("print(7)", "print('end', file=sys.stderr)")
                    + "; sys.exit(2)"))  # fmt: skip


def test_half_of_a_long_line_is_no_result():
    # The end of this line would be a number, if its beginning were forgotten.
    with refuses("no-result"):
        call(python("print('x' + '1' * 3_000_000)"))


def test_background_processes_do_not_delay_the_result():
    began = time.monotonic()
    assert call(Command("sh -c 'sleep 20 & echo 5'")) == 5
    assert time.monotonic() - began < 15


def test_the_memory_of_all_processes_of_a_command_counts():
    eater = "x = b'x' * 300_000_000; import time; time.sleep(600)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {eater!r}])"
    command = Command(python(parent).template, CommandLimits(memory_bytes=150 * 2**20))
    with pytest.raises(MemoryError):
        call(command)

import json
import shlex
import subprocess
import sys

import pytest

from foretune.errors import UsageError
from foretune.run.commands import Command, CommandError

NAMES = ("lr", "depth", "model:svm:C")


@pytest.mark.parametrize(
    ("template", "config", "line"),
    [
        ("run --lr {lr}", {"lr": 0.1}, "run --lr 0.1"),
        ("run --lr={lr} {{x}}", {"lr": 0.1}, "run --lr=0.1 {x}"),
        ("run {lr}", {"lr": "a b; rm *"}, "run 'a b; rm *'"),
        ("run -C {model:svm:C}", {"model:svm:C": 2}, "run -C 2"),
        ("run --depth {depth} -v", {}, "run -v"),
        ("run --depth={depth} -v", {}, "run -v"),
        ("run {depth} -v", {}, "run -v"),
        ("run -d {depth} --lr {lr}", {"lr": 1}, "run --lr 1"),
        ("run --verbose --set=x:{depth} {lr}", {"lr": 1}, "run 1"),
        ("run -d {depth} -e {depth}", {}, "run "),
        ("run --lr -1 {depth}", {}, "run --lr -1 "),
        ("run {{depth}} {depth} -v", {}, "run {depth} -v"),
    ],
)
def test_placeholders_become_values(template, config, line):
    assert Command(template).line(config) == line


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ('run --x "{depth} {lr}" -v', "run -v"),
        ("run --x '{depth} {lr}' -v", "run -v"),
        ('run --x "a \\" {depth}" -v', "run -v"),
        ("run --x a\\ {depth} -v", "run -v"),
        ('echo "-a b" {depth} -v', 'echo "-a b" -v'),
        ("run --depth {depth}; echo {lr}", "run ; echo 1"),
        ("run --depth {depth}|tail -n {lr}", "run |tail -n 1"),
        ("run {depth}&& echo {lr}", "run && echo 1"),
        ("run -v;{depth} {lr}", "run -v;1"),
        ("echo $(run --depth {depth}) `run {depth}`", "echo $(run ) `run `"),
        ("run --depth {depth}\nrun {lr}", "run \nrun 1"),
        ("run --depth \\\n {depth} -v", "run -v"),
        ("run -v\n{depth}", "run -v\n"),
        ("run > log-{depth}.txt", "run "),
        ("run >log-{depth}.txt -v", "run -v"),
        ("run 2>>log-{depth}.txt -v", "run -v"),
        ("run a2>log-{depth}.txt", "run a2"),
        ("run > log.txt --depth {depth}", "run > log.txt "),
    ],
)
def test_what_is_inactive_takes_its_argument_along_and_nothing_else(template, line):
    assert Command(template).line({"lr": 1}) == line


@pytest.mark.parametrize(
    "place",
    [
        "{lr}",
        "'{lr}'",
        '"{lr}"',
        "a'b'{lr}",
        "\\'\"'{lr}\"",
        "'\\'{lr}",
        '"$(printf %s \'a"b\') {lr}"',
        '"`printf %s \'a"b\'` {lr}"',
    ],
)
@pytest.mark.parametrize("value", ["a b", "it's", 'say "no"', "$HOME `pwd` $(pwd)", "\\n \\", "*"])
def test_values_reach_the_program_as_they_are(place, value):
    around = _printed(f"printf %s {place.replace('{lr}', '@')}")
    line = Command(f"printf '%s|' {place} {{lr}}").line({"lr": value})
    assert _printed(line) == f"{around.replace('@', value)}|{value}|"


def _printed(line):
    return subprocess.run(line, shell=True, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "template",
    [
        'run "$(echo {lr})"',
        "run \"$(echo '{lr}')\"",
        'run "a $(echo "{lr}")"',
        'run "`echo {lr}`"',
        'run $(echo "$(echo {lr})")',
        'run "$(echo (a) {lr})"',
    ],
)
def test_a_placeholder_in_a_command_within_double_quotes_is_refused(template):
    with pytest.raises(UsageError, match=r"must not stand in .* but '\{lr\}' does: leave out"):
        Command(template).check(NAMES)


@pytest.mark.parametrize(
    "template",
    [
        'run "$(date)" {lr}',
        'run "$(date)-{lr}"',
        'run "`date`" "{lr}"',
        'run $(echo "{lr}")',
        "run `echo {lr}`",
        "run '\"$(echo {lr})\"'",
        'run "\\$(echo {lr})"',
        'run "$((2 * {depth}))"',
        'run "(" {lr}',
        'run "it\'s $(date)" {lr}',
        'run "$(echo {{a}})"',
    ],
)
def test_commands_within_a_command_are_no_obstacle_elsewhere(template):
    Command(template).check(NAMES)


def test_unknown_placeholders_are_refused():
    Command("run {lr} {depth} {model:svm:C} {{any}}").check(NAMES)
    with pytest.raises(UsageError, match=r"'{rate}' is none of lr, depth"):
        Command("run {rate}").check(NAMES)


def python(program):
    return Command(f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}")


@pytest.mark.parametrize(
    ("printed", "result"),
    [
        ("0.25", 0.25),
        ("1\nepoch 2\n", 1),
        ('{"loss": 0.5, "size": 3}\n[1]\n"text"\ntrue\ndone', {"loss": 0.5, "size": 3}),
        ("1\n2\n\n", 2),
    ],
)
def test_the_last_json_line_is_the_result(printed, result):
    assert python(f"print({printed!r})".replace("{", "{{").replace("}", "}}"))({}) == result


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise ValueError('too  bad')", "exit code 1: ValueError: too  bad"),
        ("import sys; sys.exit(3)", "exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "exit code 137: Killed"),
        ("print('no number')", "it printed no line that is a JSON number or object"),
    ],
)
def test_failures_say_why(program, reason):
    with pytest.raises(CommandError) as failed:
        python(program)({})
    assert str(failed.value).endswith(reason)


def test_the_whole_configuration_is_in_the_environment():
    config = {"lr": 0.1, "mode": None, "on": True}
    command = python("import os; print(os.environ['FORETUNE_CONFIG'])")
    assert command(config) == json.loads(json.dumps(config))


def test_the_memory_of_all_processes_of_a_command_counts():
    eater = "x = b'x' * 300_000_000; import time; time.sleep(600)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {eater!r}])"
    command = Command(python(parent).template, memory_bytes=150 * 2**20)
    with pytest.raises(MemoryError, match="over its limit of 150 MB"):
        command({})

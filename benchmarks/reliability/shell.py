"""Values that try to be run as commands, in command templates of all kinds.

    python benchmarks/reliability/shell.py                  # everything: some minutes
    python benchmarks/reliability/shell.py --templates 40 --values 10

Each template is given each value in real shells, in a scratch folder. A value that is run leaves a
file there, the canary. Where the template is accepted, the program must receive the value exactly.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from parts import run_parts
from rows import Row

from foretune.errors import UsageError
from foretune.run.commands import Command
from foretune.space import Space

SHELLS = (("/bin/dash",), ("/bin/bash",), ("/bin/bash", "--posix"))
CANARY = "canary"
LONGEST_SECONDS = 10.0
SHOW = "/usr/bin/printf '[%s]' "
"""A program, not a shell's own command, that prints each argument in brackets."""

PLACES = {
    "{a}": "@",
    "'{a}'": "@",
    '"{a}"': "@",
    "--o={a}": "--o=@",
    "--o='{a}'": "--o=@",
    '"x {a} y"': "x @ y",
    "'x '{a}' y'": "x @ y",
    '"it\'s {a}"': "it's @",
    "'\"'{a}'\"'": '"@"',
    '"\\"{a}\\""': '"@"',
    "\\'{a}\\\"": "'@\"",
    "\"'{a}'\"": "'@'",
    "'\"{a}\"'": '"@"',
    "\"a'b\"'c\"d'{a}": "a'bc\"d@",
    "'\\'{a}": "\\@",
    "é{a}ü": "é@ü",
    "a#{a}": "a#@",
    '"$HOME"{a}': "~@",
    "'$(x)'{a}'`y`'": "$(x)@`y`",
    '"\\$(x) {a}"': "$(x) @",
}
"""Places for a value inside of an argument, and what the program must get, with @ for the value."""

AROUND = [
    "R",
    "R | cat",
    "true && R",
    "false || R",
    "cd . ; R",
    "R > out; cat out",
    "R 2>&1 | cat",
    "\n\nR\n",
    "true;R;true",
    "LANG=C R",
    "env A=1 R",
    "nice -n 1 R",
    "R < /dev/null",
    "true && \\\nR",
]
"""Surroundings in which each place is understood. R is the program that shows its argument."""

TWISTED = [
    "# it's a comment\nR", "# it's\nR # it's", 'R # "', '# "\nR # "', "true # it's\nR", "#`\nR",
    "echo `R`", "echo `R` `R`", "echo \"`R`\"", "echo `echo \\`R\\``", "echo \"`echo '`R`'`\"",
    "echo $(R)", 'echo "$(R)"', "echo \"$(echo '$(R)')\"", "echo $(echo $(R))", "echo ${{X:-R}}",
    "cat <<EOF\nR\nEOF", "cat <<EOF\n$(R)\nEOF", "cat <<'EOF'\n' R\nEOF\nR",
    "cat <<-E\n\tR\n\tE\nR",
    "cat <<EOF\n`R`\nEOF", "cat <<\\EOF\nit's\nEOF\nR", "cat <<A <<B\n'\nA\n\"\nB\nR",
    "cat <<< R", "cat <(R)", "R > >(cat)", "R &", "R & wait", "(R)", "(true; R)", "{{ R; }}", "! R",
    "if R; then R; fi", "while false; do R; done; R", "for x in 1; do R; done",
    "until R; do R; done",
    "case x in x) R;; esac", "case R in *) true;; esac", "f() {{ R; }}; f",
    "function f {{ R; }}; f",
    "eval R", 'eval "R"', "eval 'R'", "eval \\\"R\\\"", "eval eval R", "e'val' R", "\\eval R",
    "builtin eval R", "command eval R", "exec R", "exec sh -c 'R'", "command R", "time R",
    'sh -c "R"', "sh -c 'R'", 'bash -c "R"', 'bash -lc "R"', 'bash -o pipefail -c "R"',
    "bash -c'R'", "/bin/sh -c \"R\"", "timeout -s KILL 5 sh -c \"R\"", "env A=1 bash -c \"R\"",
    "nice -n 1 nohup sh -c \"R\"", "$SHELL -c \"R\"", "nice $SHELL -c \"R\"", "s''h -c \"R\"",
    "find . -maxdepth 0 -exec sh -c \"R\" ';'", "echo x | xargs sh -c \"R\"", "R | sh",
    "R | bash -s",
    "R > f; sh f", "R > f; . ./f", "R > f.sh; bash ./f.sh", "echo \"R\" | sh", "echo R | sudo sh",
    "R\r\ntrue", "true\r\nR", "R\x0b", "R\u2028true", "R\u00a0true", "[[ R ]]", "[[ -n R ]]",
    "R || {{ R; }}", "R |& cat", "R &> out", "R >&2", "R >| out", "R <> out", "R;; R", "R ; ; R",
]  # fmt: skip
"""Surroundings that a tracker of quotation marks may misread."""

ALONE = [
    "{a}", "'{a}'", "{a} x", '"{a}" x', "./{a}", "X={a}; $X", "X={a}; eval $X", "X={a} sh -c '$X'",
    "export X={a}; eval \"$X\"", "X='{a}'; eval \"$X\"", "set -- {a}; eval \"$1\"", "set {a}",
    "trap {a} EXIT", "trap '{a}' EXIT; true", "alias x={a}\nx", "alias {a}\nx", "source {a}",
    ". {a}", "exec {a}", "command {a}", "builtin {a}", "env {a}", "env -S {a}", "env -S '{a}' x",
    "nice {a}", "nohup {a}", "timeout 5 {a}", "xargs {a} < /dev/null", "sudo {a}", "time {a}",
    "sh {a}", "sh -c {a}", "sh -c '{a}'", "bash -c {a} x y", "bash --rcfile {a} -i", "sh -s {a}",
    "echo {a} | sh", "echo {a} | bash", "printf %s {a} | sh", "echo {a} | xargs -I@ sh -c @",
    "echo {a} > f; sh f", "echo {a} > f; . ./f", "echo {a} > f.sh; chmod +x f.sh; ./f.sh",
    "echo {a} | python3", "echo {a} | python3 -", "echo {a} > f.py; python3 f.py",
    "python3 -c {a}", "python3 -c 'print({a})'", "python3 -c \"print('{a}')\"", "python3 {a}",
    "python3 -m {a}", "perl -e {a}", "perl -e 'print \"{a}\"'", "perl -we 'print q({a})'",
    "awk {a}", "awk 'BEGIN {{ print \"{a}\" }}'", "awk -v x={a} 'BEGIN {{ print x }}'",
    "sed s/x/{a}/ /dev/null", "echo x | sed -e 's/x/{a}/'", "find . -name {a}", "find {a}",
    "make X={a}", "make {a}", "git -c {a} status", "[[ {a} -eq 1 ]]", "[[ 1 -eq {a} ]]",
    "[[ -v {a} ]]", "test -v {a}", "[ -v {a} ]", "test {a} -eq 1", "test {a}", "printf {a}",
    "printf -v {a} x", "printf %d {a}", "let {a}", "let x={a}", "declare -i x={a}", "declare {a}",
    "declare \"x={a}\"", "typeset -i {a}=1", "local x={a}", "readonly {a}", "unset {a}",
    "read {a} < /dev/null", "read -p {a} x < /dev/null", "mapfile -C {a} -c 1 x < /dev/null",
    "echo $(( {a} ))", "echo $(({a}))", "(( {a} ))", "(( x = {a} )); echo $x", "echo $[ {a} ]",
    "x[{a}]=1", "echo ${{x[{a}]}}", "echo ${{x:{a}}}", "echo ${{x:-{a}}}", "echo ${{{a}}}",
    "echo \"${{x:-{a}}}\"", "echo ${{!{a}}}", "cat <<EOF\n{a}\nEOF", "cat <<'EOF'\n{a}\nEOF",
    "cat <<{a}\nx\n{a}", "cat <<EOF\n$(( {a} ))\nEOF", "cat <<-EOF\n\t{a}\n\tEOF", "cat <<< {a}",
    "for x in {a}; do eval $x; done", "for {a} in 1; do true; done", "case {a} in {a}) true;; esac",
    "case x in {a}) true;; esac", "{a}() {{ true; }}; x", "select x in {a}; do break; done",
    "cd {a}", "echo {a}", "true {a}", ": {a}", "false {a}", "kill {a}", "ulimit {a}", "umask {a}",
    "exit {a}", "return {a}", "shift {a}", "getopts {a} x", "bind {a}", "complete -C {a} x",
    "compgen -C {a}", "compgen -W {a}", "enable -f {a} x", "hash -p {a} x; x", "fc -e {a}",
    "PATH={a} x", "PATH={a}; x", "LD_PRELOAD={a} true", "IFS={a} true", "BASH_ENV={a} bash -c true",
    "PS4={a}; set -x; true", "PROMPT_COMMAND={a} bash -i < /dev/null", "ENV={a} sh -i < /dev/null",
    "true > {a}", "true >> x{a}", "cat < {a}", "true 2> {a}", "true {a}>x", "true >&{a}",
    "echo \\{a}", "echo \"\\{a}\"", "echo {a}\\", "echo '{a}", "echo \"{a}", "echo `{a}",
    "echo ~{a}",
    "echo ${a}", "echo \"${a}\"", "echo $'{a}'", "echo $\"{a}\"", "echo *{a}*", "!{a}", "#{a}",
    "{{{a},x}}", "echo {{{a},x}}", "echo {{1..{a}}}", "coproc {a}", "wait {a}", "ev* {a}",
    "$X eval {a}", "$X {a}", "\"$X\" {a}", "X=eval; $X {a}", "X=sh; $X -c {a}", "su -c {a} x",
]  # fmt: skip
"""Whole templates, most of which hand the value to somebody who runs it."""

VALUES = [
    "$(touch canary)", "`touch canary`", "; touch canary", "\ntouch canary\n", "| touch canary",
    "&& touch canary", "& touch canary &", "'; touch canary; '", '"; touch canary; "',
    "'$(touch canary)'", '"$(touch canary)"', "\\`touch canary\\`", "'`touch canary`'",
    "\"`touch canary`\"", "a[$(touch canary)]", "x=a[$(touch canary)]", "-va[$(touch canary)]",
    "EOF\ntouch canary\n", "); touch canary; (", ")); touch canary; ((", "]]; touch canary; [[",
    "}; touch canary; {", ";; esac; touch canary; case x in x) :", "fi; touch canary",
    "done; touch canary", "> canary", ">canary", "2>canary", "<(touch canary)", "touch canary",
    "touch${IFS}canary", "{touch,canary}", "$'\\x24(touch canary)'", "x $(touch canary) # it's",
    "it's $(touch canary)", "-Stouch canary", "() { :;}; touch canary", "a\r\ntouch canary\r\n",
    "\\\n; touch canary", "'\ntouch canary\n'", "\"\ntouch canary\n\"", "\\'; touch canary; \\'",
    'BEGIN{system("touch canary")}', '"; system("touch canary"); "', "x/;e touch canary\n#",
    '__import__("os").system("touch canary")', "');__import__('os').system('touch canary')#",
    "--eval=$(shell touch canary)", "system('touch canary')", "\u2019; touch canary; \u2019",
    "eval touch canary", "*", "", " ", "  x  ", "-n", "%s%n", "\\", "\\n\\c", "~", "$HOME", "é\tü",
    "!!", "#", "'", '"', "`", "x" * 100_000,
]  # fmt: skip


class Template(NamedTuple):
    """A template, and what its program prints: @ stands for the value, None for anything."""

    text: str
    shown: str | None


def templates() -> list[Template]:
    """All templates, each once."""
    found = [
        Template(around.replace("R", SHOW + place), shown.replace("~", os.environ.get("HOME", "")))
        for place, shown in PLACES.items()
        for around in AROUND
    ]
    twisted = [
        around.replace("R", SHOW + place) for around in TWISTED for place in list(PLACES)[:3]
    ]
    found += [Template(text, None) for text in [*twisted, *ALONE]]
    return list(dict.fromkeys(found))


def run_all(chosen: Sequence[Template], values: Sequence[str], folder: Path) -> Counter[str]:
    """Try each value in each template, and count what came of it."""
    counts: Counter[str] = Counter(templates=len(chosen), values=len(values))
    for template in chosen:
        for value in values:
            _try(template, value, folder, counts)
    return counts


def _try(template: Template, value: str, folder: Path, counts: Counter[str]) -> None:
    command = Command(template.text)
    try:
        command.check(Space.of({"a": [value, "x y"]}))
    except UsageError:
        counts["refused"] += len(SHELLS)
        if template.shown is not None:
            raise
        return
    arguments, variables = command.start({"a": value})
    for run, times in _runs(arguments):
        counts["run"] += times
        printed = _read_output(run, variables, folder)
        if _has_canary(folder):
            counts["injected"] += times
            print(f"INJECTED {template.text!r} with {value!r:.60} by {run[0]}", file=sys.stderr)
        if template.shown is not None:
            expected = f"[{template.shown}]".replace("@", value).encode()
            counts["exact" if expected == printed else "inexact"] += times
            if expected != printed:
                print(f"INEXACT {template.text!r} {value!r:.60}: {printed!r:.80}", file=sys.stderr)


def _runs(arguments: list[str]) -> Iterator[tuple[list[str], int]]:
    """What is started, and for how many shells it stands: without a shell, it is the same."""
    if arguments[0] != "/bin/sh":
        yield arguments, len(SHELLS)
        return
    for shell in SHELLS:
        yield [*shell, *arguments[1:]], 1


def _read_output(arguments: list[str], variables: dict[str, str], folder: Path) -> bytes:
    environment = {**os.environ, **variables, "SHELL": "/bin/sh"}
    process = subprocess.Popen(
        arguments, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        return process.communicate(timeout=LONGEST_SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        return process.communicate()[0]


def _has_canary(folder: Path) -> bool:
    found = [path for path in folder.iterdir() if path.name.startswith(CANARY)]
    for path in found:
        path.unlink()
    return bool(found)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--templates", type=int, help="so many of them, drawn by the seed")
    parser.add_argument("--values", type=int, help="so many of them, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="parts at the same time")
    given = parser.parse_args()
    drawn, began = random.Random(given.seed), time.monotonic()
    chosen, values = templates(), VALUES
    if given.templates is not None:
        chosen = drawn.sample(chosen, min(given.templates, len(chosen)))
    if given.values is not None:
        values = drawn.sample(values, min(given.values, len(values)))
    parts = [(chosen[start::PARTS], values) for start in range(min(PARTS, len(chosen)))]
    counts: Counter[str] = Counter()
    for _, found in run_parts(run_part, parts, given.jobs):
        counts += found
        counts["values"] = len(values)
        _row_of(counts, time.monotonic() - began).print()
    counts["combinations"] = len(chosen) * len(values) * len(SHELLS)
    counts["seconds"] = round(time.monotonic() - began)
    columns = ["templates", "values", "combinations", "refused", "run", "exact", "inexact",
               "injected", "seconds"]  # fmt: skip
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    print("| " + " | ".join(f"{counts[column]:,}" for column in columns) + " |")
    sys.exit(1 if counts["injected"] or counts["inexact"] else 0)


PARTS = 60
"""Templates are divided into so many parts, each of which has a folder of its own."""


def run_part(part: tuple[Sequence[Template], Sequence[str]]) -> Counter[str]:
    with tempfile.TemporaryDirectory() as folder:
        return run_all(*part, Path(folder))


def _row_of(counts: Counter[str], seconds: float) -> Row:
    return Row(
        "values of hyperparameters that try to run as commands",
        count=counts["run"] + counts["refused"],
        wrong=counts["injected"] + counts["inexact"],
        refused=counts["refused"],
        longest_s=round(seconds, 1),
        note=f"{counts['templates']} templates, {counts['values']} values, {len(SHELLS)} shells",
    )


if __name__ == "__main__":
    main()

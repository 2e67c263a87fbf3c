"""`foretune methods`: list the methods."""

import click


@click.command("methods")
def methods_command() -> None:
    """List the methods: names, what they do, what they need.

    Methods of other installed packages come last.
    """
    from foretune.search import METHODS

    width = max(map(len, METHODS))
    for name in METHODS:
        click.echo(f"{name:<{width}}  {_describe_method(name)}")


def _describe_method(name: str) -> str:
    from foretune.errors import MethodError
    from foretune.search import method

    try:
        found = method(name)
    except MethodError as error:
        return f"[cannot be used: {error}]"  # the others can do it
    needs = [
        need
        for need, wanted in (
            ("experience", found.needs_experience),
            ("meta-features", found.needs_meta_features),
            ("one objective", not found.several_objectives),
        )
        if wanted
    ]
    return f"{found.summary}  [needs {', '.join(needs)}]" if needs else found.summary

"""`foretune methods`: what there is to choose from."""

import click


@click.command("methods")
def methods_command() -> None:
    """List the methods: name, what they need, what they do."""
    from foretune.search import METHODS

    width = max(len(name) for name in METHODS)
    for method in METHODS.values():
        needs = [
            need
            for need, wanted in (
                ("experience", method.needs_experience),
                ("meta-features", method.needs_meta_features),
                ("one objective", not method.several_objectives),
            )
            if wanted
        ]
        note = f"  [needs {', '.join(needs)}]" if needs else ""
        click.echo(f"{method.name:<{width}}  {method.summary}{note}")

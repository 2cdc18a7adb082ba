"""`pystream recipes`: short programs that answer first questions."""

from __future__ import annotations

import ast
from importlib import resources

import click
from rich.markup import escape

from pystream.cli.console import stdout, table


@click.command(epilog="Example: pystream recipes sliding_mean | python -")
@click.argument("name", required=False)
def recipes(name: str | None) -> None:
    """Show short programs that answer first questions."""
    programs = sources()
    if name is not None:
        found = programs.get(name.replace("-", "_").removesuffix(".py"))
        if found is None:
            raise click.UsageError(f"there is no recipe {name!r}; there are {', '.join(programs)}")
        click.echo(found, nl=False)
        return
    listing = table()
    listing.add_column("recipe", no_wrap=True)
    listing.add_column("what it shows")
    for each, text in programs.items():
        first, *others = (ast.get_docstring(ast.parse(text)) or "").splitlines()
        needs = [line for line in others if line.startswith("Needs: ")]
        listing.add_row(each, escape("\n".join([first, *needs])))
    console = stdout()
    console.print(listing)
    console.print("\n`pystream recipes NAME` shows one; each runs as it is.", markup=False)


def sources() -> dict[str, str]:
    """The programs by their names, as they are in the package."""
    files = sorted((f for f in resources.files("pystream.recipes").iterdir()), key=lambda f: f.name)
    return {
        f.name.removesuffix(".py"): f.read_text("utf-8") for f in files if f.name.endswith(".py") and f.name[0] != "_"
    }

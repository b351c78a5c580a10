"""What begins with an underscore in Textual may be gone with its next release: the screen leans on
two such names, and takes none of them for its own."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import textual

import ckptcost.first.tui

SCREEN = Path(ckptcost.first.tui.__file__).parent
ALLOWED = {
    "ANSI_SEQUENCES_KEYS",  # Esc and a digit are two keys: typing_ahead.py says why
    "_make_app",  # the door of the server has to stand before all that it serves
}


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def names_given(tree: ast.AST) -> set[str]:
    """Private names that a class or module defines or puts onto an object."""
    found = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    found |= {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.Module)]
    found |= {
        target.id
        for statement in itertools.chain(*bodies)
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        if isinstance(target, ast.Name)
    }
    return {name for name in found if private(name)}


def names_used(tree: ast.AST) -> set[str]:
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        if private(node.attr)
    } | names_given(tree)


@cache
def source_of(of: type) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(of)))


def is_textual(of: type) -> bool:
    return of.__module__.split(".")[0] in ("textual", "textual_serve")


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SCREEN.rglob("*.py")):
        yield str(path.relative_to(SCREEN)), ast.parse(path.read_text("utf-8"))


def imported() -> set[str]:
    """From a module of Textual that is private itself, or by a private name."""
    return {
        alias.name
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("textual")
        for alias in node.names
        if private(alias.name) or any(map(private, (node.module or "").split(".")))
    }


def inherited() -> set[str]:
    """Used or overridden in a class, where a class of Textual's that it stands on has the name."""
    found = set()
    for name, _ in trees():
        words = ["ckptcost", "tui", *Path(name).with_suffix("").parts]
        module = importlib.import_module(".".join(words).removesuffix(".__init__"))
        for each in vars(module).values():
            if inspect.isclass(each) and each.__module__ == module.__name__:
                for base in filter(is_textual, each.__mro__):
                    found |= names_used(source_of(each)) & names_given(source_of(base))
    return found


def reached() -> set[str]:
    """Of another object, by a name that nothing of the screen's own has, and something of Textual's
    does."""
    own = set().union(*(names_given(tree) for _, tree in trees()))
    used = set().union(*(names_used(tree) for _, tree in trees()))
    theirs = set()
    for path in Path(textual.__file__).parent.rglob("*.py"):
        theirs |= names_given(ast.parse(path.read_text("utf-8")))
    return {name for name in used - own if name in theirs and name not in ("_exit", "_replace")}


def test_two_private_names_of_textual_and_no_more():
    assert imported() | inherited() | reached() == ALLOWED

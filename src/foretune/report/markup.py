"""HTML made of elements, so that no text can reach a page unescaped."""

import html
from collections.abc import Iterable
from typing import TypeAlias


class Markup(str):
    """HTML that is safe as it is. Any other string is text and is escaped."""

    __slots__ = ()


Content: TypeAlias = "str | Iterable[Content]"

VOID = frozenset({"meta"})
"""Elements without an end tag that the page uses."""


def element(tag: str, *content: Content, **attributes: str | bool) -> Markup:
    """Make an element with escaped text and attributes.

    In an attribute's name, a trailing underscore is dropped and other underscores become hyphens:
    `class_`, `aria_label`. False leaves an attribute out; True writes only its name.
    """
    written = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in VOID:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{join_markup(*content)}</{tag}>")


def join_markup(*content: Content) -> Markup:
    """Join pieces. Text among them is escaped."""
    return Markup("".join(_safe(piece) for piece in content))


def replace_surrogates(text: str) -> str:
    """Replace what UTF-8 cannot hold: half characters, from odd file names."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _attribute(name: str, value: str | bool) -> str:
    if value is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    return f" {written}" if value is True else f' {written}="{_safe(str(value))}"'


def _safe(content: Content) -> str:
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return html.escape(replace_surrogates(content), quote=True)
    return join_markup(*content)

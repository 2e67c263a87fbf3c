"""Reading values as Python prints them."""

import ast
from typing import Any


def read_literal(text: str) -> Any:
    """Read plain values, and those of NumPy such as np.float64(0.5), as Python prints them."""
    return ast.literal_eval(_PlainNumPy().visit(ast.parse(text.strip(), mode="eval")))


class _PlainNumPy(ast.NodeTransformer):
    """Replaces np.float64(0.5), np.str_('a') and np.True_ by their values."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace a call of a NumPy type by its argument."""
        return node.args[0] if _of_numpy(node.func) and len(node.args) == 1 else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace np.True_ and np.False_."""
        known = {"True_": True, "False_": False}
        named = _of_numpy(node) and node.attr in known
        return ast.Constant(known[node.attr]) if named else node


def _of_numpy(node: ast.AST) -> bool:
    """Return whether an expression is a name in NumPy, as NumPy prints it."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "np"
    )

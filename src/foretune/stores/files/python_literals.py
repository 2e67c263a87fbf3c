"""Values as Python prints them."""

import ast
from typing import Any


def read_literal(text: str) -> Any:
    """What Python prints of plain values, those of NumPy among them, such as np.float64(0.5)."""
    return ast.literal_eval(_PlainNumPy().visit(ast.parse(text.strip(), mode="eval")))


class _PlainNumPy(ast.NodeTransformer):
    """Puts the value in place of np.float64(0.5), np.str_('a') and np.True_."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A type of NumPy is called with its value."""
        return node.args[0] if _of_numpy(node.func) and len(node.args) == 1 else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Truth values have names."""
        known = {"True_": True, "False_": False}
        named = _of_numpy(node) and node.attr in known
        return ast.Constant(known[node.attr]) if named else node


def _of_numpy(node: ast.AST) -> bool:
    """Whether an expression is a name in NumPy, as its values print it."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "np"
    )

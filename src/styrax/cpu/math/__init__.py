"""Elementary and special functions as LLVM IR text: see `definition`."""
from .definitions import FUNCTIONS, TEXTS, argument_names, definition, module_text

__all__ = ["FUNCTIONS", "TEXTS", "argument_names", "definition", "module_text"]

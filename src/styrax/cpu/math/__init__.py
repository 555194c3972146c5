"""Elementary and special functions as LLVM IR text: see `definition`."""
from .definitions import FUNCTIONS, argument_names, definition, module_text

__all__ = ["FUNCTIONS", "argument_names", "definition", "module_text"]

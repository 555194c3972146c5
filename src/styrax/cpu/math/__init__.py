"""Elementary and special functions as LLVM IR text: see `definition`."""
from .definitions import FUNCTIONS, definition, module_text

__all__ = ["FUNCTIONS", "definition", "module_text"]

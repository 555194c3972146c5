"""The loop IR: scalar expressions, statements, operations; its text, its reader and its verifier."""

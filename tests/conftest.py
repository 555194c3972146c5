"""The compiler's verifiers are on in all tests, those in processes of their own included."""

import os

words = os.environ.get("STYRAX_DEBUG", "")
os.environ["STYRAX_DEBUG"] = f"{words},verify" if words else "verify"

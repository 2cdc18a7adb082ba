"""What went wrong, in one line, out of the reports of Spark and Java, which have hundreds."""

from __future__ import annotations

import re


def cause_of(error: Exception) -> str:
    """Our own error in an executor's Python if it was one, else the innermost cause in Java, else the first line."""
    message = str(error)
    for pattern in (r"^pystream\.errors\.\w+: (.+)$", r"^Caused by: [\w.$]+: (.+)$", r"^: [\w.$]+: (.+)$"):
        found = re.findall(pattern, message, re.MULTILINE)
        if found:
            return str(found[-1])
    return message.strip().splitlines()[0]

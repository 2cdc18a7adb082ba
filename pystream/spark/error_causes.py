"""What went wrong, in one line, out of the reports of Spark and Java, which have hundreds."""

from __future__ import annotations

import re

#: Where the cause is, the best first: our own error in an executor's Python, one of a task that could not begin, any
#: other of Python (with its name, or a KeyError says little), the innermost one in Java.
CAUSES = (
    r"^pystream\.errors\.\w+: (.+)$",
    r"^ImportError: (.*pystream.+)$",
    r"^((?!(?:org|javax?|scala|py4j)\.)(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt): .+)$",
    r"^Caused by: [\w.$]+: (.+)$",
    r"^: [\w.$]+: (.+)$",
)


def cause_of(error: Exception) -> str:
    """Our own error in an executor's Python if it was one, else Python's or the innermost in Java, or the first line.

    >>> cause_of(RuntimeError(chr(10).join(["Job aborted", "Traceback ...", "KeyError: 'meter'", "at org.apache.X"])))
    "KeyError: 'meter'"
    """
    message = str(error)
    for pattern in CAUSES:
        found = re.findall(pattern, message, re.MULTILINE)
        if found:
            return str(found[-1])
    return message.strip().splitlines()[0]

"""Short programs that answer first questions: `pystream recipes` lists them, `pystream recipes NAME` shows one.

Each runs as it is, on data that it makes up, and ends with a comment that says what it prints. Tests hold it to that.
One that needs more than pystream says so in the last line of its docstring: "Needs: pip install ...".
"""

"""`pystream check`: run the TLC models of spec/ and compare each with what the manifest says it must give.

manifest   what a model is, spec/models.json, the configuration text for TLC
selection  which models a command line means, constants flipped by hand
java       where Java and tla2tools.jar are
limits     cores and memory there are, containers respected
runner     a few processes side by side; nothing survives an interrupt
tlc        one TLC run: its command line, and how far it is
messages   TLC's output cut into messages
result     what a run found, and whether that is what the manifest says
coverage   PlusCal labels that no passing model reaches
falsified  properties that no model violates
changed    a module with a mistake in its text
pluscal    are the committed translations up to date
values     TLA+ values as TLC prints them, and what changed between two
trace      a counterexample, one line a step, one column a thread
check      all of the above put together, without a terminal
progress   what is shown while it runs
tables     what is shown at the end
update     measured numbers written back into the manifest and spec/README.md

The command line is pystream/cli/check.py.
"""


class CheckError(Exception):
    """The check cannot be made; the message is one sentence that says what to do."""

"""`pystream report`: what is known about this installation, on one page.

A folder with `index.html`, which needs nothing else, and the pictures on it as files. What it shows, and from where:

- what is installed                    `pystream doctor`
- all designs give the same bytes      run here and now, on a sample, against the oracle (pystream/reference.py)
- the paper's claims and figures       a document of `pystream bench`, or a short measurement made here and now; the
                                       paper's designs in figures of their own, which ours would squeeze
- what the models show                 spec/models.json, which `pystream check` holds TLC to
- seeded bugs and who catches them     tests/mutants.toml and tests/model/seeded.toml, in a checkout

The last two are read, not run: `pystream check` and `pytest` are what makes them true.
"""

"""What people bring, as Arrow record batches: any frame, file, dict or iterable in; checked columns out.

shapes          is it one input or several, and what is a thing that is none
ingest          record batches of a source; one batch for `Operator.add`
file_inputs     files by path or glob; file_formats reads them
dict_rows       rows as dicts, gathered into batches
c_data          Arrow's C data interface, with its structs checked
schemas         which columns a query needs, and one schema for all inputs
column_checks   a column by name: sound, and in the type that the plan wants
column_names    messages about columns that are not there
sorting         a whole input, sorted by its timestamps

Rooms below: `_native`.
"""

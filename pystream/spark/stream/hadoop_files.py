"""Hadoop's file systems, by way of Spark's Java side: all that a classic session can write to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def replace(spark: SparkSession, folder: str, name: str, text: str) -> None:
    """Put a file in the place of another: there is never half a one."""
    java: Any = spark  # Spark has no other door to its file systems than its Java side
    jvm, gateway = java._jvm, java._sc._gateway  # noqa: SLF001
    hadoop = jvm.org.apache.hadoop.fs
    root = hadoop.Path(folder)
    files = root.getFileSystem(java._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001
    hidden, file = hadoop.Path(root, f".{name}.ended.tmp"), hadoop.Path(root, name)
    try:
        out = files.create(hidden, True)
        out.write(text.encode())
        out.close()
        rename = getattr(hadoop, "Options$Rename")
        how = gateway.new_array(rename, 1)
        how[0] = rename.OVERWRITE
        # Hadoop's other view of file systems, the only one that puts a file in the place of another at once.
        hadoop.FileContext.getFileContext(files.getUri(), files.getConf()).rename(hidden, file, how)
    finally:
        files.delete(hidden, False)

"""What can be asked, and what answers it: schemas, questions and engines.

::

    engine = load("visits.parquet", person="patient_id")
    question = parse("age >= 60 and town = :town", engine.schema, {"town": "Ghent"})
    (steps,) = engine.values([question])          # secret: for mechanisms only
    print(check("age >= 60", engine.schema))      # public: what is promised about a question
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.support import loader

if TYPE_CHECKING:
    from tacit.tables.engine.engine import Engine
    from tacit.tables.language.keys import Batch
    from tacit.tables.language.prepared import Prepared, check, parse, parse_batch, prepare
    from tacit.tables.language.show import Statement
    from tacit.tables.language.tree import Question
    from tacit.tables.opening import load
    from tacit.tables.schema.schema import EACH_ROW, Column, Schema, read_schema, write_schema
    from tacit.tables.schema.text_format import TextFormat
    from tacit.tables.steward.propose import propose_schema
    from tacit.tables.steward.report import report_schema

# Every public name and its module, loaded on first use: proposing a schema needs no SQL.
_HOME = {
    "EACH_ROW": "tacit.tables.schema.schema",
    "Batch": "tacit.tables.language.keys",
    "Column": "tacit.tables.schema.schema",
    "Engine": "tacit.tables.engine.engine",
    "Prepared": "tacit.tables.language.prepared",
    "Question": "tacit.tables.language.tree",
    "Schema": "tacit.tables.schema.schema",
    "Statement": "tacit.tables.language.show",
    "TextFormat": "tacit.tables.schema.text_format",
    "check": "tacit.tables.language.prepared",
    "load": "tacit.tables.opening",
    "parse": "tacit.tables.language.prepared",
    "parse_batch": "tacit.tables.language.prepared",
    "prepare": "tacit.tables.language.prepared",
    "propose_schema": "tacit.tables.steward.propose",
    "read_schema": "tacit.tables.schema.schema",
    "report_schema": "tacit.tables.steward.report",
    "write_schema": "tacit.tables.schema.schema",
}

__all__ = [
    "EACH_ROW",
    "Batch",
    "Column",
    "Engine",
    "Prepared",
    "Question",
    "Schema",
    "Statement",
    "TextFormat",
    "check",
    "load",
    "parse",
    "parse_batch",
    "prepare",
    "propose_schema",
    "read_schema",
    "report_schema",
    "write_schema",
]

__getattr__ = loader(__name__, _HOME)

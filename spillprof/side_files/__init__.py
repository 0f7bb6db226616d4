"""Files beside the model: the one way to open and parse them, within limits of size, depth and digits.

Whoever reads one names its kind (``kinds``), opens it (``opening``), and has it parsed (``json_text``, ``toml_text``,
``tables``). What is wrong with it is an error of the kind, with the place.
"""

from spillprof.side_files.json_text import parse_json
from spillprof.side_files.kinds import Kind
from spillprof.side_files.opening import check_regular, decoded_stdin, read_bytes, read_stdin, read_text, watched
from spillprof.side_files.tables import check_table, table_lines
from spillprof.side_files.toml_text import parse_toml

__all__ = [
    "Kind",
    "check_regular",
    "check_table",
    "decoded_stdin",
    "parse_json",
    "parse_toml",
    "read_bytes",
    "read_stdin",
    "read_text",
    "table_lines",
    "watched",
]

"""Files with measured times of operators: plain CSV, ONNX Runtime's profile, Vela's CSV of layers."""

from spillprof.frontends.op_times.csv_files import read_csv
from spillprof.frontends.op_times.onnxruntime_profile import read_profile
from spillprof.ir.errors import UsageError
from spillprof.ir.op_times import OpTimes
from spillprof.ir.side_files.kinds import TIMES
from spillprof.ir.side_files.opening import read_text

__all__ = ["read_op_times"]


def read_op_times(path: str) -> OpTimes:
    """The times in a file, whose kind is told from its content. ``UsageError`` if it cannot be understood."""
    text = read_text(path, TIMES)
    is_json = text.lstrip()[:1] in ("[", "{")
    times = read_profile(text, path) if is_json else read_csv(text, path)
    if not times.times:
        raise UsageError("there is no time in the file", where=(path,))
    return times

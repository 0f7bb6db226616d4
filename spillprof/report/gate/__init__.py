"""What a gate found, in the formats that people and CI systems read. Each is a function of the GateReport alone."""

from spillprof.report.gate.github import render as github
from spillprof.report.gate.json_format import render as json
from spillprof.report.gate.junit import render as junit
from spillprof.report.gate.markdown import render as markdown
from spillprof.report.gate.sarif import render as sarif
from spillprof.report.gate.text_format import render as text

__all__ = ["github", "json", "junit", "markdown", "sarif", "text"]

"""Files beside the model: the one way to open and parse them, within limits of size, depth and digits.

Whoever reads one names its kind (``kinds``), opens it (``opening``), and has it parsed (``json_text``, ``toml_text``,
``tables``). What is wrong with it is an error of the kind, with the place.
"""

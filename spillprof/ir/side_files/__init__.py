"""Opens and parses files beside the model, within limits of size, depth and digits.

A reader names the kind of file (``kinds``), opens it (``opening``) and parses it (``json_text``, ``toml_text``,
``tables``). Errors are of the kind's class and name the place.
"""

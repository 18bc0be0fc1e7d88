"""The one error type that a person is meant to read."""


class UserError(ValueError):
  """Something the user can mend: one sentence that names the flag, file, row or column.

  Command-line tools print it as `error: ...` and exit with code 2, without a traceback.
  """

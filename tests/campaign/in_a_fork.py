"""The program, in a fork of a process that has imported it.

To import it takes longer than most campaigns of the toy agent. The fork gets what a
process of its own would have: folder, environment, command line, and where to print.
"""

import os
import sys
from typing import Any

from chaoskit.cli import run_words

job: dict[str, Any] = globals()["job"]
os.chdir(job["folder"])
os.environ.clear()
os.environ.update(job["environment"])
for handle, path in ((1, job["stdout"]), (2, job["stderr"])):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, handle)
    os.close(file)
sys.argv = ["chaoskit", *job["words"]]
sys.exit(run_words(job["words"]))

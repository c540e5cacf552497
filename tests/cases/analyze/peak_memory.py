# SPDX-License-Identifier: Apache-2.0
"""peak_memory.py COMMAND …: runs it and prints its exit status, standard error and peak of memory, in MB, as JSON."""

import json
import resource
import subprocess
import sys

done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
print(json.dumps({"exit": done.returncode, "error": done.stderr,
                  "mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 // 1_000_000}))

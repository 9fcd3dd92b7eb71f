# SPDX-License-Identifier: BSD-3-Clause
"""Where the Python with PyTorch is: TUTTI_TORCH_PYTHON, else the environment that `make torch-venv` makes."""
import os
import pathlib
import subprocess
import sys

SKIP = 77


def find():
    """Its path; ends the program with the reason and code 77 where there is none."""
    named = os.environ.get("TUTTI_TORCH_PYTHON")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    python = pathlib.Path(named or os.path.join(cache, "tutti", "torch-venv", "bin", "python"))
    if not python.exists():
        print(f"SKIP: no PyTorch: {python} is not there\n"
              "  next: make torch-venv, or TUTTI_TORCH_PYTHON=/path/to/python of an environment with torch")
        sys.exit(SKIP)
    asked = subprocess.run([python, "-c", "import torch.distributed as d; d.TCPStore; import torch; "
                            "print(torch.__version__)"], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        print(f"SKIP: {python} cannot import torch.distributed: {asked.stderr.strip().splitlines()[-1:]}")
        sys.exit(SKIP)
    print(f"PyTorch {asked.stdout.strip()} of {python}")
    return python

# SPDX-License-Identifier: BSD-3-Clause
"""What there is before a group: the release of PyTorch that the shim belongs to, and calls that need a world."""
import re
import subprocess
import sys
import unittest

import torch
import tutti_torch

OTHER = """
import torch
torch.__version__ = "9.8.7+cpu"
import tutti_torch
"""


class Loading(unittest.TestCase):
    def test_another_release_of_pytorch_is_refused(self):
        """Before anything of the shim is used: it has the memory of the release that it was built with."""
        ended = subprocess.run([sys.executable, "-c", OTHER], capture_output=True, text=True, timeout=120)
        mine = re.match(r"\d+\.\d+\.\d+", torch.__version__).group()
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn(f"ImportError: tutti_torch was built with PyTorch {mine}, and this is 9.8.7\n  next: ", ended.stderr)

    def test_what_needs_a_world_says_so(self):
        for call in (lambda: tutti_torch.empty(3), tutti_torch.monitored_barrier):
            with self.assertRaisesRegex(ValueError, "Default process group has not been initialized"):
                call()

    def test_memory_of_a_group_that_this_rank_is_not_in(self):
        with self.assertRaisesRegex(ValueError, "not in the group"):
            tutti_torch.empty(3, group=torch.distributed.GroupMember.NON_GROUP_MEMBER)


if __name__ == "__main__":
    unittest.main()

"""Training in processes of their own: one that is killed at a chosen instant, and two that train together."""

import os
import signal
import subprocess
import sys
from pathlib import Path

KILL_AT = str(Path(__file__).with_name("kill_at.py"))


def run_until_killed(point, count, *words, cwd):
    """`weft …`, killed with SIGKILL at a point that `kill_at.py` knows."""
    result = subprocess.run(
        [sys.executable, KILL_AT, point, str(count), *words],
        cwd=cwd,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=False,
    )
    assert result.returncode == -signal.SIGKILL, result.stderr.decode()


def torchrun(folder, *command, check=True):
    """Two ranks on this machine, through gloo on the loopback address."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    env = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.run(
        [*launcher, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=check
    )

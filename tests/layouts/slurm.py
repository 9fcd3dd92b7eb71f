# SPDX-License-Identifier: BSD-3-Clause
"""Slurm for tests: its daemons on two hosts that are network namespaces, started and ended by the test itself.

Goal    what srun, sbatch and salloc really do, without a cluster and without a trace on the machine.
Method  munged, slurmctld and slurmd run in the foreground, from a folder of the test's: nothing below /etc is read or written,
        and their ports are ports of the namespaces. The hosts are those of tour_hosts.py, n1 and n2, joined by a cable; n1 has
        slurmctld, and is where a user would log in. Slurm is told that each has CPUS of them, whatever there are.
End     the whole test is the first process of a PID namespace: whatever a Slurm leaves behind ends with it, however it ends.
"""
import os
import secrets
import shutil
import subprocess
import sys
import time

SKIPPED = 77
CPUS = 16
START_S = 60
PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "sbatch", "salloc", "sinfo", "unshare", "nsenter", "setpriv"]
SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin"  # where daemons are, and users' PATHs may not lead
CONFIG = """\
ClusterName=test
SlurmctldHost=n1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
MessageTimeout=60
SchedulerParameters=bf_interval=1
TmpFS={folder}/tmp-%n
KillWait=2
NodeName=n1 NodeAddr=10.78.0.1 CPUs={cpus} State=UNKNOWN
NodeName=n2 NodeAddr=10.78.0.2 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP
{more}
"""


def path_with_daemons(path):
    return f"{path}:{SYSTEM}"


def missing():
    """Which of Slurm's programs, or of those that make hosts, is not here; "" where all are."""
    path = path_with_daemons(os.environ.get("PATH", ""))
    return " ".join(name for name in PROGRAMS if shutil.which(name, path=path) is None)


def in_own_pids():
    """Go on as the first process of a PID namespace; words where that is not allowed."""
    own = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getpid() == 1:
        return ""
    if shutil.which("unshare") is None or subprocess.run([*own, "true"], capture_output=True, check=False).returncode != 0:
        return "no namespaces"
    sys.stdout.flush()
    os.execvp(own[0], [*own, sys.executable, "-B", *sys.argv])


class Slurm:
    """The daemons on the hosts n1 and n2; folder has their files, and has to be short: sockets are in it."""

    def __init__(self, hosts, folder, env, more=""):
        self.folder = folder / "slurm"
        self.env = {**env, "SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path_with_daemons(env["PATH"])}
        self.hosts = hosts
        self.daemons = []
        (self.folder / "state").mkdir(parents=True)
        for path in (folder, self.folder):
            path.chmod(0o755)
        config = CONFIG.format(folder=self.folder, cpus=CPUS, more=more)
        (self.folder / "slurm.conf").write_text(config)
        with open(os.open(self.folder / "munge.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as key:
            key.write(secrets.token_bytes(128))

    def log(self, name):
        return self.folder / f"{name}.log"

    def daemon(self, host, name, command):
        with open(self.log(name), "wb") as log:
            self.daemons.append(subprocess.Popen(
                ["nsenter", "--target", str(host.keeper.pid), "--net", "--mount", "--uts", "setpriv", "--pdeathsig", "KILL", *command],
                env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT))

    def start(self):
        """Words of what fails."""
        at = {name: f"--{name}={self.folder}/munge.{name}" for name in ("socket", "pid-file", "seed-file", "log-file")}
        self.daemon(self.hosts[0], "munged", ["munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key", *at.values()])
        self.daemon(self.hosts[0], "slurmctld", ["slurmctld", "-D"])
        for host in self.hosts:
            for name in ("spool", "tmp"):
                (self.folder / f"{name}-{host.name}").mkdir()
            self.daemon(host, f"slurmd-{host.name}", ["slurmd", "-D", "-N", host.name])
        return self.wait_until_idle()

    def wait_until_idle(self):
        deadline = time.monotonic() + START_S
        said = ""
        while time.monotonic() < deadline:
            code, said = self.hosts[0].run("sinfo --noheader --Node --format='%N %T'", self.env)
            if code == 0 and said.split() == ["n1", "idle", "n2", "idle"]:
                return ""
            if any(daemon.poll() is not None for daemon in self.daemons):
                break
            time.sleep(0.1)  # sinfo waits for nothing
        return f"Slurm has not come up: sinfo says {said!r}\n{self.logs()}"

    def logs(self):
        names = ["munged", "slurmctld", *(f"slurmd-{host.name}" for host in self.hosts)]
        return "".join(f"{name} | {line}\n" for name in names if self.log(name).exists()
                       for line in self.log(name).read_text(errors="replace").splitlines()[-12:])

    def end(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

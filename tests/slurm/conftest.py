"""A real SLURM of one node on loopback, with two GPUs that are none. All it writes is in a temporary directory."""

import os
import platform
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import needs

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel", "sinfo")
GPUS = 2
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={folder}/seen.sh
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=3
GresTypes=gpu
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=16000 Gres=gpu:{gpus}
PartitionName=cpu Nodes=node Default=YES
PartitionName=gpu Nodes=node
"""


@dataclass(frozen=True)
class Cluster:
    """A running SLURM."""

    folder: Path

    @property
    def environment(self):
        """What programs that talk to it need."""
        path = f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin"
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def ask(self, *command):
        """Run a command that must succeed; returns what it printed."""
        return subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    def submissions(self):
        """What SLURM says of every job since it was started, in order; it forgets none within a day."""
        lines = self.ask("scontrol", "--oneliner", "show", "jobs").splitlines()
        jobs = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in lines]
        return sorted((job for job in jobs if "JobId" in job), key=lambda job: int(job["JobId"]))

    def devices(self):
        """CUDA_VISIBLE_DEVICES as each job saw it, by number of the job; empty where there was none."""
        lines = (self.folder / "seen").read_text().splitlines() if (self.folder / "seen").exists() else []
        return dict(line.split(" ", 1) for line in lines)


def write(path, text):
    """Write a program."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def configure(folder):
    """Write all that the daemons read."""
    with socket.socket() as one, socket.socket() as other:
        for taken in (one, other):
            taken.bind(("127.0.0.1", 0))
        ports = one.getsockname()[1], other.getsockname()[1]
    host = platform.node().partition(".")[0]
    text = CONFIGURATION.format(host=host, controller_port=ports[0], node_port=ports[1], folder=folder, gpus=GPUS)
    (folder / "slurm.conf").write_text(text + "MinJobAge=86400\n")
    (folder / "gres.conf").write_text(f"NodeName=node Name=gpu File={folder}/gpu[0-{GPUS - 1}]\n")
    for gpu in range(GPUS):  # second names of /dev/null: SLURM sets CUDA_VISIBLE_DEVICES for device files alone
        os.mknod(folder / f"gpu{gpu}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    write(folder / "seen.sh", f'#!/bin/sh\necho "$SLURM_JOB_ID $CUDA_VISIBLE_DEVICES" >> {folder}/seen\n')
    # Snakemake's SLURM plugin drops SLURM_CONF before a job's srun; a cluster has its slurm.conf in /etc.
    srun = shutil.which("srun")
    write(folder / "bin/srun", f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {srun} "$@"\n')
    # Without accounting sacct is of no use and may hang: who asks it leaves a trace.
    write(folder / "bin/sacct", f'#!/bin/sh\necho "$@" >> {folder}/sacct.asked\nexit 1\n')


def start(folder):
    """Start the daemons; ends when the node takes jobs. RuntimeError says why it does not."""
    cluster = Cluster(folder)
    munge = {name: f"{folder}/munge.{name}" for name in ("socket", "key")} | {
        f"{name}-file": f"{folder}/munged.{name}" for name in ("pid", "log", "seed")
    }
    munge["key-file"] = munge.pop("key")
    cluster.ask("munged", "--force", *(f"--{option}={path}" for option, path in munge.items()))
    cluster.ask("slurmctld", "-c", "-f", str(folder / "slurm.conf"))
    cluster.ask("slurmd", "-N", "node", "-f", str(folder / "slurm.conf"))
    until = time.monotonic() + 30
    while cluster.ask("sinfo", "--noheader", "--format=%T").strip().splitlines()[0] != "idle":
        if time.monotonic() > until:
            raise RuntimeError("its node does not become idle: " + (folder / "slurmd.log").read_text()[-300:])
        time.sleep(0.1)
    return cluster


def stop(folder):
    """End jobs and daemons; a daemon takes its file of its process id with it."""
    if (folder / "slurmctld.pid").exists():
        cluster = Cluster(folder)
        cluster.ask("scancel", "--quiet", "--user", "root")
        until = time.monotonic() + 30
        while cluster.ask("squeue", "--noheader") and time.monotonic() < until:  # a step that ends later stays for ever
            time.sleep(0.1)
    for daemon in ("slurmd", "slurmctld", "munged"):
        path = folder / f"{daemon}.pid"
        if not path.exists():
            continue
        number = int(path.read_text())
        os.kill(number, signal.SIGTERM)
        until = time.monotonic() + 10
        while path.exists() and time.monotonic() < until:
            time.sleep(0.1)
        if path.exists():
            os.kill(number, signal.SIGKILL)


def missing():
    """Why no SLURM can be started here; None where it can."""
    if os.geteuid() != 0:
        return "SLURM's daemons need root here"
    for program in PROGRAMS:
        if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is None:
            return f"{program} is not installed (apt-get install slurm-wlm munge)"
    return None


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    """A SLURM of its own, empty at first."""
    if reason := missing():
        needs.lack("slurm", reason)
    folder = tmp_path_factory.mktemp("slurm")
    try:
        configure(folder)
        cluster = start(folder)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        stop(folder)
        needs.lack("slurm", f"it does not start: {getattr(error, 'stderr', None) or error}")
    yield cluster
    stop(folder)

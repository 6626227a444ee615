#!/bin/sh
# Runs a Slurm cluster on this machine, for tests: munged, slurmctld and several slurmd, all with their files in FOLDER.
# It prints 'ready' when all nodes are idle, and ends everything when its standard input is closed.
#
#   cluster.sh FOLDER NODES PORT TIMEOUT [LOCAL]      the ports are PORT to PORT + NODES
#
# A node that does not answer for TIMEOUT seconds is down. Each node has its own files in the folder LOCAL, as if it was on
# a disk of the node; that needs root.
#
# FOLDER must not have a space in its name: slurm.conf has no quotes.
set -eu
folder=$1 nodes=$2 port=$3 timeout=$4 local=${5-}
host=$(hostname -s)
cd "$folder"
mkdir -p state
chmod 755 .

dd if=/dev/urandom of=munge.key bs=1024 count=1 2>/dev/null
chmod 400 munge.key
munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
  --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"

cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmctldPidFile=$folder/slurmctld.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdSpoolDir=$folder/spool-%n
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmdLogFile=$folder/slurmd-%n.log
SlurmdTimeout=$timeout
KillWait=20
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/linear
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName=node[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + nodes))] CPUs=1
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
SLURM_CONF=$folder/slurm.conf
export SLURM_CONF

pids=
slurmctld -D >slurmctld.out 2>&1 &
pids=$!
n=1
while [ "$n" -le "$nodes" ]; do
  if [ -n "$local" ]; then
    # The shell becomes slurmd, in its own namespace.
    unshare --mount sh -c 'mount -t tmpfs tmpfs "$1" && exec slurmd -D -N "$2"' sh "$local" "node$n" >"slurmd-node$n.out" 2>&1 &
  else
    slurmd -D -N "node$n" >"slurmd-node$n.out" 2>&1 &
  fi
  pids="$pids $!"
  n=$((n + 1))
done
trap 'kill $pids $(cat munged.pid) 2>/dev/null || true; wait' EXIT
trap 'exit 1' TERM INT HUP

tries=0
until [ "$(sinfo --noheader --format=%T 2>/dev/null | sort -u)" = idle ]; do
  tries=$((tries + 1))
  if [ "$tries" -gt 300 ]; then
    echo 'the cluster does not start' >&2
    sinfo >&2 || true
    for log in ./*.log ./*.out; do tail -n 5 "$log" >&2; done
    exit 1
  fi
  sleep 0.2
done
echo ready
cat >/dev/null

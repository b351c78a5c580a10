#!/bin/sh
# Slurm's TaskProlog: as the job's user, before each task. What it prints as `export NAME=VALUE` comes into the task's environment.
here=$(dirname "$0")
# shellcheck source=examples/fleet/fleet.conf
. "$here/../fleet.conf"

if [ -z "$CKPTCOST_RUNS" ] && [ -w "$RUNS/$SLURM_JOB_ID" ]; then
    echo "export CKPTCOST_RUNS=$RUNS/$SLURM_JOB_ID"
fi
exit 0

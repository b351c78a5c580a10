#!/bin/sh
# Slurm's Prolog: on each node, as root, before the job. A folder on the node's own disk for the job's runs, and the processors' joules
# for its user where fleet.conf says so. A prolog that fails drains the node, so the exit code is 0 whatever happens.
here=$(dirname "$0")
# shellcheck source=examples/fleet/fleet.conf
. "$here/../fleet.conf"

say() { logger -t ckptcost -- "prolog of job $SLURM_JOB_ID: $*" 2>/dev/null; }

folder=$RUNS/$SLURM_JOB_ID
[ -d "$RUNS" ] || mkdir -p "$RUNS"
[ -d "$folder" ] || mkdir -m 0700 "$folder" || say "cannot make $folder"
if [ "$(id -u)" = 0 ]; then
    chown -h "$SLURM_JOB_UID:$SLURM_JOB_GID" "$folder" || say "cannot give away $folder"
    if [ "$OPEN_METERS" = yes ]; then
        for file in "$POWERCAP"/intel-rapl*/energy_uj; do
            [ -e "$file" ] || continue
            if ! { chown "$SLURM_JOB_UID" "$file" && chmod 0400 "$file"; }; then say "cannot open $file"; fi
        done
    fi
fi
exit 0

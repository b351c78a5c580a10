#!/bin/sh
# Slurm's Epilog: on each node, as root, after the job. Takes the meters back, packs what the job recorded here, and removes what was
# packed long ago. An epilog that fails drains the node, so the exit code is 0 whatever happens.
here=$(dirname "$0")
# shellcheck source=examples/fleet/fleet.conf
. "$here/../fleet.conf"

if [ "$(id -u)" = 0 ] && [ "$OPEN_METERS" = yes ]; then
    for file in "$POWERCAP"/intel-rapl*/energy_uj; do
        [ -e "$file" ] && chown root "$file" && chmod 0400 "$file"
    done
fi
"$here/../pack-runs.sh" "$RUNS/$SLURM_JOB_ID"
find "$RUNS/.packed" -type f -mtime "+$KEEP_DAYS" 2>/dev/null | while read -r packed; do
    job=$(basename "$packed")
    # a number, so nothing but a job's folder; `rm` does not follow links
    case $job in *[!0-9]* | '') continue ;; esac
    # what was written since is not in the store, and may be being written
    find "$RUNS/$job" -newer "$packed" -print -quit 2>/dev/null | grep -q . && continue
    rm -rf --one-file-system "${RUNS:?}/$job" && rm -f "$packed"
done
rmdir "$RUNS/$SLURM_JOB_ID" 2>/dev/null
exit 0

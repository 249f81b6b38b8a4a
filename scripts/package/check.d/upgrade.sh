# An upgrade with jobs in flight and in the queue: each of them ends, and none is charged for it.

upgrade_jobs=12

step_upgrade() {
    local jobs=() job version
    version=$(dpkg-deb -f "$package" Version)
    # An operator's own value, which has to survive.
    sed -i 's/^#SVC_LOG=info/SVC_LOG=info/' "$root/etc/lakemill/up.env"
    touch "$system/upgrade"
    inside systemctl restart lakemill-up
    check "it answers" await 60 answers http://127.0.0.1:3000/readyz
    for _ in $(seq "$upgrade_jobs"); do jobs+=("$(inside lakemill-ctl enqueue flights --clean)"); done
    check "a job is in flight" await 60 in_flight
    check "the package is upgraded" inside apt-get install -y -o Dpkg::Options::=--force-confold /srv/check/new.deb
    check "the new version is there" says "$version" dpkg-query -W -f '${Version}' lakemill
    check "up is active again" await 60 unit_is lakemill-up active
    check "it was stopped in order" says 'stop signal; draining' journalctl --no-pager -u lakemill-up
    check "no process had to be killed" says_not 'SIGKILL' journalctl --no-pager -u lakemill-up -o cat --since "$(upgrade_began)"
    for job in "${jobs[@]}"; do
        check "job $job is completed, at its first attempt" completed_at_once "$up_pipelines" "$job"
    done
    check "every job has one record" test "$(records_of "${jobs[@]}")" = "$upgrade_jobs"
    check "the tables are right" tables_are_right "$root$up_objects/svc-warehouse/pipelines/flights"
    check "the operator's value is still there" holds '^SVC_LOG=info' "$root/etc/lakemill/up.env"
    check "the password is still the same" login "$(inside lakemill-ctl password)"
    given_back
    drained
    check "the older version can be had again" inside apt-get install -y --allow-downgrades -o Dpkg::Options::=--force-confold /srv/check/old.deb
    check "it answers" await 60 answers http://127.0.0.1:3000/readyz
    check "the new one, too" inside apt-get install -y -o Dpkg::Options::=--force-confold /srv/check/new.deb
    check "it answers, too" await 60 answers http://127.0.0.1:3000/readyz
}

upgrade_began() { stat -c @%Y "$system/upgrade"; }
in_flight() { says '"in_flight": *[1-9]' curl -sS http://127.0.0.1:8080/health; }
completed_at_once() {
    local text
    text=$(record "$1" "$2") || return 1
    grep -qE '"status": ?"completed"' <<<"$text" && grep -qE '"attempt": ?1,' <<<"$text" || { echo "$text" && return 1; }
}
records_of() {
    local job
    for job in "$@"; do ls "$root$up_pipelines/pipelines/flights/jobs/$job.json" 2>/dev/null; done | wc -l
}

# A job that takes longer than the drain goes back into the queue, and isn't charged.
given_back() {
    local job
    drop_in lakemill-up '[Service]' 'Environment=SVC_DRAIN_SECONDS=0'
    check "it answers" await 60 answers http://127.0.0.1:3000/readyz
    big_pipeline
    job=$(inside lakemill-ctl enqueue big --clean)
    check "a job is in flight that takes long" await 60 in_flight
    check "it is told to end at once" inside systemctl restart lakemill-up
    check "the job had been given back" says 'requeue' journalctl --no-pager -u lakemill-up -o cat
    check "it ends all the same, at its first attempt" completed_at_once "$up_pipelines" "$job"
    no_drop_in lakemill-up
}

# A drain takes as long as its runs, though systemd was told less: the service asks for more.
drained() {
    local job
    drop_in lakemill-up '[Service]' 'TimeoutStopSec=2'
    check "it answers" await 60 answers http://127.0.0.1:3000/readyz
    job=$(inside lakemill-ctl enqueue big --clean)
    check "a job is in flight that takes long" await 60 in_flight
    check "it is told to end" inside systemctl restart lakemill-up
    check "the job had ended before the service did" record_is_there "$up_pipelines" "$job"
    check "and at its first attempt" completed_at_once "$up_pipelines" "$job"
    check "no process had to be killed" says_not 'SIGKILL\|timed out' journalctl --no-pager -u lakemill-up -o cat --since "$(upgrade_began)"
    no_drop_in lakemill-up
}

# A run of some seconds.
big_pipeline() {
    inside runuser -u lakemill -- mkdir -p "$up_objects/svc-lake/pipelines/big" "$up_pipelines/pipelines/big"
    inside sh -c 'cat >/srv/check/pipeline.json' <<'JSON'
{
  "version": 1, "auto_run": false,
  "mappings": [{
    "table": "big", "files": ["*.csv"],
    "columns": [{ "name": "id", "type": "int64" }, { "name": "text", "type": "string" }]
  }]
}
JSON
    awk 'BEGIN { print "id,text"; for (i = 0; i < 20000000; i++) print i ",row " i }' >"$root/srv/check/big.csv"
    inside install -o lakemill -g lakemill -m 0640 /srv/check/big.csv "$up_objects/svc-lake/pipelines/big/big.csv"
    rm "$root/srv/check/big.csv"
    inside install -o lakemill -g lakemill -m 0640 /srv/check/pipeline.json "$up_pipelines/pipelines/big/pipeline.json"
}

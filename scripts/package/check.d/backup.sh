# The commands of docs/operations/backup.md: a backup while jobs run, and its restoration.

step_backup() {
    local job
    job=$(inside lakemill-ctl enqueue flights --clean)
    check "a backup of what runs: the queue" inside install -d -m 0700 /backup
    check "a backup of what runs: the queue's file" inside sqlite3 /var/lib/lakemill/kv.db ".backup '/backup/kv.db'"
    local folder
    for folder in svc-pipelines svc-warehouse svc-lake; do
        check "a backup of what runs: $folder" backed_up $folder
    done
    check "a backup of configuration and secrets" inside rsync -a --delete /etc/lakemill/ /backup/etc/
    check "the job that ran meanwhile is completed" completed "$up_pipelines" "$job"

    check "all is lost" inside sh -c 'systemctl stop lakemill-up && rm -rf /var/lib/lakemill/* /etc/lakemill/secrets /etc/lakemill/password'
    check "configuration and secrets are back" inside rsync -a /backup/etc/ /etc/lakemill/
    check "objects are back" inside rsync -aHX /backup/objects/ /var/lib/lakemill/objects/
    check "and the service's own" inside chown -R lakemill:lakemill /var/lib/lakemill
    check "the queue is back" inside install -o lakemill -g lakemill -m 0600 /backup/kv.db /var/lib/lakemill/kv.db
    check "it starts" inside systemctl start lakemill-up
    check "it is ready" await 60 answers http://127.0.0.1:3000/readyz
    check "the password is as it was" login "$(inside lakemill-ctl password)"
    check "what differed is made anew by itself" await 180 nothing_is_on
    check "the tables are right" await 60 tables_are_right "$root$up_objects/svc-warehouse/pipelines/flights"
    check "a run finds them so" completed "$up_pipelines" "$(inside lakemill-ctl enqueue flights)"
    check "the tables are right after it" tables_are_right "$root$up_objects/svc-warehouse/pipelines/flights"
    check "doctor finds no problem" inside lakemill-ctl doctor
}

# A file may go while it is copied (24): the next run of rsync, or of the service, mends that.
backed_up() {
    local status=0
    inside rsync -aHXR --delete "/var/lib/lakemill/./objects/$1/" /backup/ || status=$?
    [ "$status" = 0 ] || [ "$status" = 24 ]
}

# Neither a job nor a window.
nothing_is_on() {
    metrics 8080 | grep -E '^lakemill_(queue_entries|queue_waiting|queue_windows|jobs_in_flight) ' >"$system/on"
    [ "$(grep -c ' 0$' "$system/on")" = 4 ] || { cat "$system/on"; return 1; }
}

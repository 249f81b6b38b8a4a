# The commands of docs/operations/backup.md: a backup while jobs run, and its restoration.

step_backup() {
    local job
    job=$(inside lakemill-ctl enqueue flights --clean)
    check "a folder for backups" inside install -d -o lakemill -g lakemill -m 0700 /backup
    check "a backup of what runs" inside lakemill-ctl backup /backup/lakemill
    check "it is whole" inside lakemill-ctl backup /backup/lakemill --verify
    check "a backup of configuration and secrets" inside rsync -a --delete /etc/lakemill/ /backup/etc/
    check "the job that ran meanwhile is completed" completed "$up_pipelines" "$job"

    check "all is lost" inside sh -c 'systemctl stop lakemill-up && rm -rf /var/lib/lakemill/* /etc/lakemill/secrets /etc/lakemill/password'
    check "configuration and secrets are back" inside rsync -a /backup/etc/ /etc/lakemill/
    check "the pipelines are back" inside lakemill-ctl restore /backup/lakemill
    check "it starts" inside systemctl start lakemill-up
    check "it is ready" await 60 answers http://127.0.0.1:3000/readyz
    check "the password is as it was" login "$(inside lakemill-ctl password)"
    check "what differed is made anew by itself" await 180 nothing_is_on
    check "the tables are right" await 60 tables_are_right "$root$up_objects/svc-warehouse/pipelines/flights"
    check "a run finds them so" completed "$up_pipelines" "$(inside lakemill-ctl enqueue flights)"
    check "the tables are right after it" tables_are_right "$root$up_objects/svc-warehouse/pipelines/flights"
    check "doctor finds no problem" inside lakemill-ctl doctor
}

# Neither a job nor a window.
nothing_is_on() {
    metrics 8080 | grep -E '^lakemill_(queue_entries|queue_waiting|queue_windows|jobs_in_flight) ' >"$system/on"
    [ "$(grep -c ' 0$' "$system/on")" = 4 ] || { cat "$system/on"; return 1; }
}

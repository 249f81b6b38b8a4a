# Everything in one process: a pipeline is made, runs, and is queried.

up_objects=/var/lib/lakemill/objects
up_pipelines=$up_objects/svc-pipelines

step_up() {
    local job
    check "worker and stores are ready" await 30 answers http://127.0.0.1:8080/readyz
    check "web service and stores are ready" await 30 answers http://127.0.0.1:3000/readyz
    check "it listens on this machine alone" nobody_else_may_connect
    check "the password opens a session" login "$(inside lakemill-ctl password)"
    check "a wrong password doesn't" says unauthorized curl -sS -H 'content-type: application/json' \
        -d '{"password":"wrong"}' http://127.0.0.1:3000/api/auth/login
    check "the sample pipeline is made" made_flights
    job=$(api POST /api/p/flights/jobs | job_id)
    check "its run ends" completed "$up_pipelines" "$job"
    check "the tables are right" tables_are_right "$root$up_objects/svc-warehouse/pipelines/flights"
    check "a query is answered" says 58665 curl -sS -b /srv/check/session -H 'content-type: application/json' \
        -d '{"sql":"SELECT carrier, count(*) FROM flights GROUP BY 1 ORDER BY 2 DESC LIMIT 1"}' \
        http://127.0.0.1:3000/api/p/flights/query
    check "queries are confined by Landlock" metrics_say 3000 'lakemill_sandbox_confined 1'
    check "the operator's commands see the same" says "$job" lakemill-ctl jobs flights
    check "doctor finds no problem" inside lakemill-ctl doctor
    check "a CSV that is dropped becomes rows" dropped_csv_is_read
    check "logs are JSON, with the job's id" says "$job" sh -c "journalctl -u lakemill-up -o cat | grep '^{'"
    check "no secret is in the journal" no_secret_in_journal
    check "a new password opens a session" new_password_opens
    check "all sessions end when they are deleted" sessions_end
    check "the old secrets are still there" says . cat /etc/lakemill/secrets/SVC_WORKER_TOKEN
}

# 0BB8 and 1F90 are ports 3000 and 8080, 0A is LISTEN.
nobody_else_may_connect() {
    inside cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == "0A" && $2 ~ /:(0BB8|1F90)$/ { n++; print $2; bad += $2 !~ /^0100007F:/ }
        END { exit n == 2 && !bad ? 0 : 1 }'
}

made_flights() {
    api POST /api/pipelines -H 'content-type: application/json' -d '{"slug":"flights","template":"flights"}' |
        tee /dev/stderr | grep -q '"slug":"flights"'
}

dropped_csv_is_read() {
    local file=$up_objects/svc-lake/pipelines/flights/airlines.csv
    cp "$root$file" "$root/srv/check/airlines.csv"
    inside sh -c "(cat /srv/check/airlines.csv; echo 'ZZ,Zeppelin Line') >/srv/check/more.csv"
    inside install -o lakemill -g lakemill -m 0640 /srv/check/more.csv "$file"
    await 60 zeppelins_are 1 || return 1
    inside install -o lakemill -g lakemill -m 0640 /srv/check/airlines.csv "$file"
    await 60 zeppelins_are 0
}

zeppelins_are() {
    api POST /api/p/flights/query -H 'content-type: application/json' \
        -d "{\"sql\":\"SELECT count(*) FROM airlines WHERE carrier = 'ZZ'\"}" >"$system/zeppelins"
    grep -qE "\"rows\":\[\[\"?$1\"?\]\]" "$system/zeppelins" || { cat "$system/zeppelins"; return 1; }
}

no_secret_in_journal() {
    local file
    for file in "$root"/etc/lakemill/secrets/* "$root/etc/lakemill/password"; do
        [ ! -s "$file" ] || ! inside journalctl --no-pager -o cat | grep -qF -- "$(cat "$file")" ||
            { echo "$file is"; return 1; }
    done
}

sessions_end() {
    inside sqlite3 /var/lib/lakemill/kv.db 'DELETE FROM sessions' &&
        says unauthorized curl -sS -b /srv/check/session http://127.0.0.1:3000/api/pipelines &&
        login "$(inside lakemill-ctl password)"
}

new_password_opens() {
    local password
    password=$(inside lakemill-ctl password --new)
    await 60 answers http://127.0.0.1:3000/readyz
    login "$password"
}

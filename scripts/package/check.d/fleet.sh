# Workers and web service as units of their own, on Redis and an S3 server.

fleet_objects=/srv/s3

step_fleet() {
    local job
    check "up is turned off" inside systemctl disable --now lakemill-up
    inside mkdir -p $fleet_objects/svc-pipelines $fleet_objects/svc-lake $fleet_objects/svc-warehouse
    inside systemctl start redis-server
    inside systemd-run --quiet --unit=s3 /usr/local/bin/s3s-fs --host 127.0.0.1 --port 9000 --access-key KEYOFCHECK --secret-key SECRETOFCHECK $fleet_objects
    check "Redis answers" await 30 says PONG redis-cli ping
    inside sh -c 'echo redis://127.0.0.1:6379/0 | lakemill-ctl secret KV_URL'
    inside sh -c 'echo KEYOFCHECK | lakemill-ctl secret OBJ_ACCESS_KEY_ID'
    inside sh -c 'echo SECRETOFCHECK | lakemill-ctl secret OBJ_SECRET_ACCESS_KEY'
    inside lakemill-ctl secret SVC_METRICS_TOKEN --make
    inside sed -i -e 's|^OBJ_ENDPOINT_URL=.*|OBJ_ENDPOINT_URL=http://127.0.0.1:9000|' -e 's|^OBJ_REGION=.*|OBJ_REGION=us-east-1|' \
        /etc/lakemill/worker.env /etc/lakemill/web.env
    check "worker and web are turned on" inside systemctl enable --now lakemill-worker lakemill-web
    check "the worker is ready" await 30 answers http://127.0.0.1:8080/readyz
    check "the web service is ready" await 30 answers http://127.0.0.1:3000/readyz
    check "doctor finds no problem" doctor_finds_no_problem
    check "the password opens a session" login "$(inside lakemill-ctl password)"
    check "the sample pipeline is made" made_flights
    job=$(api POST /api/p/flights/jobs | job_id)
    check "its run ends" completed $fleet_objects/svc-pipelines "$job"
    check "the tables are right" tables_are_right "$root$fleet_objects/svc-warehouse/pipelines/flights"
    check "a query is answered" await 30 zeppelins_are 0
    check "queries are confined by Landlock" metrics_say 3000 'lakemill_sandbox_confined 1'
    check "the operator's commands see the same" says "$job" lakemill-ctl jobs flights
    check "all sessions end when they are deleted" sessions_of_redis_end
    check "no secret is in the environment of the processes" no_secret_in_environment
    check "a stop ends both in order" stopped_in_order
    check "and they start again" inside systemctl start lakemill-worker lakemill-web
    check "the worker is ready again" await 30 answers http://127.0.0.1:8080/readyz
}

# s3s-fs and a Redis without an append-only file have warnings of their own.
doctor_finds_no_problem() { says '^0 problems\|no problems' lakemill-ctl doctor; }

sessions_of_redis_end() {
    inside sh -c "redis-cli --scan --pattern 'svc:sessions:*' | xargs -r redis-cli del" &&
        says unauthorized curl -sS -b /srv/check/session http://127.0.0.1:3000/api/pipelines &&
        login "$(inside lakemill-ctl password)"
}

no_secret_in_environment() {
    local unit pid
    for unit in lakemill-worker lakemill-web; do
        pid=$(property $unit MainPID)
        ! inside cat "/proc/$pid/environ" | tr '\0' '\n' | grep -E 'SECRETOFCHECK|redis://' || return 1
    done
}

stopped_in_order() {
    inside systemctl stop lakemill-worker lakemill-web
    [ "$(property lakemill-worker Result)$(property lakemill-web Result)" = successsuccess ] ||
        { inside journalctl --no-pager -n 30 -u lakemill-worker -u lakemill-web && return 1; }
}

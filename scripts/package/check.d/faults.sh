# What an operator gets wrong is told once, and not tried for ever.

step_faults() {
    check "a worker without its environment doesn't start" refused_to_start lakemill-worker
    check "its exit status is 78" test "$(property lakemill-worker ExecMainStatus)" = 78
    check "it is not started again" test "$(property lakemill-worker NRestarts)" = 0
    local name
    for name in OBJ_ENDPOINT_URL OBJ_REGION OBJ_ACCESS_KEY_ID KV_URL; do
        check "it names $name" says "$name" journalctl --no-pager -u lakemill-worker -o cat
    done
    check "a web service without its environment doesn't start" refused_to_start lakemill-web
    check "its exit status is 78" test "$(property lakemill-web ExecMainStatus)" = 78
    check "ctl refuses a secret that nobody reads" says 'no secret is called' lakemill-ctl secret KV_URI
    check "ctl refuses a password that is too short" says 'expected at least' sh -c 'echo short | lakemill-ctl password --set'
    check "and the old one still holds" login "$(inside lakemill-ctl password)"
    inside systemctl reset-failed lakemill-worker lakemill-web
}

refused_to_start() {
    inside systemctl start "$1" && { echo "it started" && return 1; }
    await 10 unit_is "$1" failed
}

# A process that hangs is ended and started again; one whose environment is wrong is left alone.

step_watchdog() {
    local before
    drop_in lakemill-up '[Service]' 'WatchdogSec=4' 'TimeoutAbortSec=2' 'RestartSec=1'
    check "up is ready with a watchdog of 4 s" unit_is lakemill-up active
    check "it tells what it does" says 'executors' systemctl show -P StatusText lakemill-up
    sleep_past_watchdog
    check "a process that is well is left alone" test "$(property lakemill-up NRestarts)" = 0
    before=$(property lakemill-up MainPID)
    check "a process that hangs is stopped in its tracks" inside kill -STOP "$before"
    check "the watchdog ends it, and it starts again" await 60 another_process "$before"
    check "for the watchdog's reason" says 'Watchdog timeout' journalctl --no-pager -u lakemill-up
    check "it is active again" await 60 unit_is lakemill-up active
    before=$(property lakemill-up MainPID)
    check "a process that is killed" inside kill -KILL "$before"
    check "is started again" await 60 another_process "$before"
    no_drop_in lakemill-up
    check "it answers" await 60 answers http://127.0.0.1:3000/readyz
}

# Three times the watchdog's 4 s must pass: that nothing happens can only be seen by waiting.
sleep_past_watchdog() { sleep 12; }

drop_in() {
    local unit=$1
    shift
    inside mkdir -p "/run/systemd/system/$unit.service.d"
    printf '%s\n' "$@" | inside tee "/run/systemd/system/$unit.service.d/check.conf" >/dev/null
    inside systemctl daemon-reload
    inside systemctl restart "$unit" || true
}

no_drop_in() {
    inside rm -f "/run/systemd/system/$1.service.d/check.conf"
    inside systemctl daemon-reload
    inside systemctl restart "$1"
}

another_process() {
    local now
    now=$(property lakemill-up MainPID)
    [ "$now" != 0 ] && [ "$now" != "$1" ] || { echo "its process is $now, and was $1"; return 1; }
    unit_is lakemill-up active
}

# Alert rules, dashboard, and a Prometheus that reads what the services tell.

step_observe() {
    inside mkdir -p /etc/prometheus
    inside cp /dev/stdin /srv/check/alerts.yml <docs/operations/alerts.yml
    inside cp /dev/stdin /srv/check/test.yml <tests/operations/alerts.yml
    check "the alert rules are rules" inside promtool check rules /srv/check/alerts.yml
    check "each alert fires when it should, and none when all is well" inside sh -c 'cd /srv/check && promtool test rules test.yml'
    # Whether queries are confined is known from the first one on.
    check "the password opens a session" login "$(inside lakemill-ctl password)"
    check "a query is answered" await 30 zeppelins_are 0
    check "services tell what alerts and dashboard ask for" metrics_are_told
    check "each alert has its entry in the runbook" runbook_is_whole
    inside cp /dev/stdin /etc/prometheus/lakemill-alerts.yml <docs/operations/alerts.yml
    if inside test -s /etc/lakemill/secrets/SVC_METRICS_TOKEN; then
        inside cp /etc/lakemill/secrets/SVC_METRICS_TOKEN /etc/prometheus/lakemill-token
        inside chown prometheus: /etc/prometheus/lakemill-token
        sed 's/# authorization/authorization/' docs/operations/prometheus.yml | inside cp /dev/stdin /etc/prometheus/prometheus.yml
    else
        inside cp /dev/stdin /etc/prometheus/prometheus.yml <docs/operations/prometheus.yml
    fi
    check "Prometheus takes its example" inside promtool check config /etc/prometheus/prometheus.yml
    check "Prometheus starts" inside systemctl start prometheus
    check "it reads worker and web service" await 90 both_are_up
    check "no alert fires" says_not '"state":"firing"' curl -sS http://127.0.0.1:9090/api/v1/alerts
    inside systemctl stop prometheus
}

metrics_are_told() {
    metrics 8080 >"$system/worker.metrics" && metrics 3000 >"$system/web.metrics" || return 1
    "$python" scripts/package/check.d/metric_names.py docs/operations/alerts.yml docs/operations/grafana.json \
        "$system/worker.metrics" "$system/web.metrics"
}

runbook_is_whole() {
    local alert missing=0
    for alert in $(sed -n 's/.*- alert: //p' docs/operations/alerts.yml); do
        grep -q "^## $alert\$" docs/operations/runbook.md && grep -q "runbook.md#${alert,,}\$" docs/operations/alerts.yml ||
            { echo "$alert" && missing=1; }
    done
    return $missing
}

both_are_up() {
    inside curl -fsS --data-urlencode 'query=sum(up{job=~"lakemill-.*"})' http://127.0.0.1:9090/api/v1/query >"$system/up"
    holds '"2"\]' "$system/up"
}

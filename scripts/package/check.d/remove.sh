# Removing keeps what people have; purging keeps their data, and says so.

step_remove() {
    check "the package is removed" inside apt-get remove -y lakemill
    local unit
    for unit in up worker web; do check "lakemill-$unit is not running" unit_is_gone "lakemill-$unit"; done
    check "no process of it is left" says_not . pgrep -u lakemill
    check "its data is kept" inside test -s /var/lib/lakemill/kv.db
    check "its secrets are kept" inside test -s /etc/lakemill/secrets/SVC_WORKER_TOKEN
    check "its configuration is kept" holds '^OBJ_REGION=us-east-1\|^OBJ_REGION=$' "$root/etc/lakemill/worker.env"
    check "it is installed again" inside apt-get install -y /srv/check/new.deb
    check "and serves the same password" serves_again
    check "it is purged" inside apt-get purge -y lakemill
    cp "$system/said" "$system/purge.log"
    check "by words that name the data" holds '/var/lib/lakemill is kept' "$system/purge.log"
    check "configuration and secrets are gone" inside test ! -e /etc/lakemill
    check "caches are gone" inside test ! -e /var/cache/lakemill
    check "objects are kept" inside test -d /var/lib/lakemill/objects/svc-lake/pipelines
    check "no unit is left" says_not 'lakemill-' systemctl list-unit-files --no-legend --no-pager
    check "no link to one is left" says_not . find /etc/systemd -name 'lakemill*'
    inside rm -rf /var/lib/lakemill
    check "it is installed once more" inside apt-get install -y /srv/check/new.deb
    check "and starts from nothing" await 30 unit_is lakemill-up active
    check "it is purged before anything was put in" inside apt-get purge -y lakemill
    # What the other steps gave to nginx, Caddy and Prometheus is theirs.
    check "nothing is left of it" says_not . find / -xdev -name '*lakemill*' -not -path '/proc/*' -not -path '/srv/*' -not -path '/backup/*' \
        -not -path '/var/log/*' -not -path '/tmp/*' -not -path '/etc/nginx/*' -not -path '/etc/ssl/*' \
        -not -path '/etc/prometheus/*' -not -path '/var/lib/caddy/*' -not -path '/var/lib/prometheus/*'
}

unit_is_gone() { [ "$(inside systemctl is-active "$1")" != active ] || { echo "$1 is active"; return 1; }; }

# Worker and web had been turned on and up off, where the step `fleet` was done: a reinstallation leaves that as it is.
serves_again() {
    await 60 answers http://127.0.0.1:3000/livez && login "$(inside lakemill-ctl password)"
}

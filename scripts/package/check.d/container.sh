# The recipe of the image, as far as it can be tried without an engine for containers: what it copies is there, and its last
# stage's user, variables, command and health check work on a root that is read-only.

recipe=scripts/package/Containerfile

step_container() {
    check "what the recipe copies is there" copies_are_there
    check "the examples are YAML" examples_are_yaml
    inside systemctl stop lakemill-up lakemill-worker lakemill-web
    check "the health check fails as long as nobody answers" fails_health_check
    # By another name than the package's.
    local command
    for command in groupadd useradd; do
        # shellcheck disable=SC2046
        check "the image's $command" inside $(sed -n "s/^ *&& \\($command .*\\) lakemill \\\\\$/\\1/p" $recipe) image
    done
    inside install -d -o 10001 -g 10001 -m 0750 /srv/image /srv/image/lib /srv/image/cache
    # shellcheck disable=SC2046
    check "the image's command starts" inside systemd-run --quiet --unit=image -p User=10001 -p Group=10001 \
        -p ProtectSystem=strict -p BindPaths=/srv/image/lib:/var/lib/lakemill -p BindPaths=/srv/image/cache:/var/cache/lakemill \
        -p PrivateTmp=yes -p CapabilityBoundingSet= -p NoNewPrivileges=yes \
        $(sed -n 's/^ENV //p' $recipe | tr ' ' '\n' | sed 's/^/--setenv=/') \
        $(recipe_command '^ENTRYPOINT') $(recipe_command '^CMD')
    check "the health check finds it" await 30 passes_health_check
    check "it is open to others" says '"address":"0.0.0.0:3000"' journalctl --no-pager -u image -o cat
    check "it ends when told to" inside systemctl stop image
    check "and in order" says 'worker stopped' journalctl --no-pager -u image -o cat
}

# shellcheck disable=SC2046
passes_health_check() { inside $(recipe_command '^    CMD'); }
fails_health_check() { ! passes_health_check; }

# recipe_command PATTERN: the words of the last line that begins so.
recipe_command() {
    "$python" -c 'import json,re,sys
print(*json.loads(re.findall(sys.argv[2] + r" (\[.*\])$", open(sys.argv[1]).read(), re.M)[-1]))' $recipe "$1"
}

copies_are_there() {
    local source missing=0
    for source in $(sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' $recipe); do
        [ -e "$source" ] || { echo "$source is missing" && missing=1; }
    done
    return $missing
}

examples_are_yaml() {
    "$python" -m pip install --quiet --target "$system/yaml" pyyaml && PYTHONPATH=$system/yaml "$python" -c 'import sys, yaml
for name in sys.argv[1:]: assert all(yaml.safe_load_all(open(name))), name' \
        docs/operations/compose.yml docs/operations/kubernetes.yml docs/operations/cronjob.yml docs/operations/prometheus.yml docs/operations/alerts.yml
}

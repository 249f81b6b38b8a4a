# The recipe of the image, as far as it can be tried without an engine for containers: what it copies is there, and its last
# stage's user, variables, command and health check work on a root that is read-only.

recipe=scripts/package/Containerfile

step_container() {
    check "what the recipe copies is there" copies_are_there
    check "the examples are YAML" examples_are_yaml
    inside systemctl stop lakemill-up lakemill-worker lakemill-web
    printf '%s\n' "$(health_check)" | inside tee /srv/check/health >/dev/null
    check "the health check fails as long as nobody answers" fails_health_check
    inside install -d -o 10001 -g 10001 -m 0750 /srv/image /srv/image/lib /srv/image/cache
    check "the image's command starts" inside systemd-run --quiet --unit=image -p User=10001 -p Group=10001 \
        -p ProtectSystem=strict -p ReadWritePaths=/srv/image -p "BindPaths=/srv/image/lib:/var/lib/lakemill" \
        -p "BindPaths=/srv/image/cache:/var/cache/lakemill" -p PrivateTmp=yes -p CapabilityBoundingSet= -p NoNewPrivileges=yes \
        $(sed -n 's/^ENV //p' $recipe | tr ' ' '\n' | sed 's/^/--setenv=/') \
        $("$python" -c 'import json,re,sys; t=open(sys.argv[1]).read()
for key in ("ENTRYPOINT", "CMD"): print(*json.loads(re.findall(rf"^{key} (\[.*\])$", t, re.M)[-1]))' $recipe)
    check "the health check finds it" await 30 passes_health_check
    check "both ports are open to others" says '0\.0\.0\.0\|"address":"0.0.0.0:3000"' journalctl --no-pager -u image -o cat
    check "it ends when told to" inside systemctl stop image
    check "and in order" says 'the worker has ended' journalctl --no-pager -u image -o cat
}

health_check() {
    "$python" -c 'import json,re,sys; t=open(sys.argv[1]).read()
print(json.loads(re.search(r"^    CMD (\[\"bash\".*\])$", t, re.M)[1])[2])' $recipe
}
passes_health_check() { inside bash /srv/check/health; }
fails_health_check() { ! inside bash /srv/check/health; }

copies_are_there() {
    local source missing=0
    for source in $(sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' $recipe); do
        [ -e "$source" ] || { echo "$source is missing" && missing=1; }
    done
    return $missing
}

examples_are_yaml() {
    "$python" -c 'import yaml' 2>/dev/null || "$python" -m pip install --quiet --target "$system/yaml" pyyaml || return 1
    PYTHONPATH=$system/yaml "$python" -c 'import sys, yaml
for name in sys.argv[1:]: assert all(yaml.safe_load_all(open(name))), name' \
        docs/operations/compose.yml docs/operations/kubernetes.yml docs/operations/prometheus.yml docs/operations/alerts.yml
}

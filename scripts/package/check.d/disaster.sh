# What docs/operations/disaster.md says of losses, tried on worker and web service as units of their own.

fleet_warehouse=$fleet_objects/svc-warehouse/pipelines/flights

step_disaster() {
    local job manifest=$fleet_objects/svc-pipelines/pipelines/flights/manifests/flights.json

    inside systemctl stop redis-server
    check "without Redis the worker lives" await 30 answers http://127.0.0.1:8080/livez
    check "and says what is away" await 30 says '"kv":' curl -s http://127.0.0.1:8080/health
    check "it is not restarted for that" unit_is lakemill-worker active
    inside sh -c 'rm -rf /var/lib/redis/*'
    inside systemctl start redis-server
    check "with an empty Redis it goes on by itself" await 60 answers http://127.0.0.1:8080/readyz
    check "what differs is compared" await 60 says 'has lost its data\|lost its data' journalctl --no-pager -u lakemill-worker -o cat
    check "sessions are lost with it" says unauthorized curl -sS -b /srv/check/session http://127.0.0.1:3000/api/pipelines
    check "a login opens another" login "$(inside lakemill-ctl password)"
    job=$(inside lakemill-ctl enqueue flights)
    check "a job runs" completed $fleet_objects/svc-pipelines "$job"

    inside sh -c "echo '{ half a mani' >$manifest"
    job=$(inside lakemill-ctl enqueue flights)
    record $fleet_objects/svc-pipelines "$job" >"$system/job" || true
    say "  after a manifest was spoilt: $(grep -oE '"(status|code)": ?"[a-z_]+"' "$system/job" | tr '\n' ' ')"
    job=$(inside lakemill-ctl enqueue flights --clean)
    check "a clean run makes a spoilt manifest anew" completed $fleet_objects/svc-pipelines "$job"
    check "the tables are right" tables_are_right "$root$fleet_warehouse"

    inside sh -c "rm -rf $fleet_objects/svc-warehouse/*"
    job=$(inside lakemill-ctl enqueue flights --clean)
    check "a clean run makes a lost warehouse anew" completed $fleet_objects/svc-pipelines "$job"
    check "the tables are right again" tables_are_right "$root$fleet_warehouse"

    inside systemctl stop lakemill-worker
    inside mount -t tmpfs -o size=1m,uid="$(inside id -u lakemill)",gid="$(inside id -g lakemill)" tmpfs /var/cache/lakemill/scratch
    inside systemctl start lakemill-worker
    job=$(inside lakemill-ctl enqueue flights --clean)
    check "a full scratch disk is told" await 60 says 'No space left\|disk_full\|disk is full' sh -c "journalctl --no-pager -u lakemill-worker -o cat; lakemill-ctl jobs flights --json --limit 1"
    inside systemctl stop lakemill-worker
    inside umount /var/cache/lakemill/scratch
    inside systemctl start lakemill-worker
    check "with space the same job is completed" completed $fleet_objects/svc-pipelines "$job"
    check "the tables are still right" tables_are_right "$root$fleet_warehouse"

    inside mv $fleet_objects/svc-lake $fleet_objects/lost
    job=$(inside lakemill-ctl enqueue flights)
    check "a lost bucket is named" await 60 says 'bucket `svc-lake` does not exist' curl -sS http://127.0.0.1:8080/readyz
    inside mv $fleet_objects/lost $fleet_objects/svc-lake
    check "with the bucket the same job is completed" completed $fleet_objects/svc-pipelines "$job"
}

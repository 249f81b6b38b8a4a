# The system that the package is tried on, and how checks are told. To be sourced by scripts/package/check.

# What it has beside the essentials: what the package and the commands of the docs need, and what the examples are for.
system_packages=(systemd systemd-sysv dbus ca-certificates tzdata curl redis-server sqlite3 rsync procps nginx caddy
    prometheus openssl)

# Prints the folder of the pristine system; made the first time.
system_base() {
    local base
    base=$(cache_dir)/package-check/bookworm-$(printf '%s\n' "${system_packages[@]}" | sha256sum | cut -c 1-12)
    if [ ! -d "$base" ]; then
        say "making a Debian 12 (some minutes, once)"
        mkdir -p "${base%/*}"
        rm -rf "$base.new"
        debootstrap --variant=minbase --include="$(IFS=,; echo "${system_packages[*]}")" bookworm "$base.new" \
            >&2 || die "debootstrap could not make the system; see its output above"
        # Started where a step wants them, and not by themselves.
        chroot "$base.new" systemctl disable nginx caddy prometheus prometheus-node-exporter redis-server >&2 || true
        chroot "$base.new" apt-get clean
        mv "$base.new" "$base"
    fi
    printf '%s\n' "$base"
}

system_start() {
    local base
    base=$(system_base)
    system=$(mktemp -d)
    mkdir "$system/upper" "$system/work" "$system/root"
    mount -t overlay overlay -o "lowerdir=$base,upperdir=$system/upper,workdir=$system/work" "$system/root"
    root=$system/root
    mkdir "$root/srv/check"
    printf '%s\n' '127.0.0.1 localhost lakemill.example.org lakemill-check' '::1 localhost' >"$root/etc/hosts"
    cp "$s3s_fs" "$root/usr/local/bin/s3s-fs"
    # All system calls and capabilities, as a machine has them: what is taken away is for the units to say. A network of
    # its own, so that ports are free.
    setsid systemd-nspawn --register=no --keep-unit --quiet --boot --directory="$root" --private-network \
        --capability=all --system-call-filter=@known --console=pipe --hostname=lakemill-check \
        >"$system/console" 2>&1 </dev/null &
    nspawn=$!
    until leader=$(pgrep -P "$nspawn" | head -n 1) && [ -n "$leader" ] &&
        inside systemctl is-system-running 2>/dev/null | grep -qE '^(running|degraded)'; do
        kill -0 "$nspawn" 2>/dev/null || { cat "$system/console" >&2 && die "the system did not start"; }
        [ $((SECONDS - started)) -lt 300 ] || die "the system hasn't started after 5 minutes" "see $system/console"
        sleep 0.5
    done
}

system_stop() {
    [ -n "${system:-}" ] || return 0
    if [ -n "$keep" ] && kill -0 "$nspawn" 2>/dev/null; then
        say "the system runs on; enter it by: nsenter -t $leader -m -u -i -n -p -C"
        say "end it by: kill -9 $leader; umount $root; rm -rf $system"
        return 0
    fi
    [ -z "${leader:-}" ] || kill -9 "$leader" 2>/dev/null || true
    [ -z "${nspawn:-}" ] || wait "$nspawn" 2>/dev/null || true
    umount "$root" 2>/dev/null || umount -l "$root" 2>/dev/null || true
    rm -rf "$system"
    system=
}

# Runs a command in the system.
inside() {
    nsenter -t "$leader" -m -u -i -n -p -C -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv/check LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "$@"
}

# check WHAT COMMAND…: the command must succeed. What it said when it didn't is shown, and with the last words again.
check() {
    local what=$1 status=0
    shift
    checks=$((checks + 1))
    "$@" >"$system/said" 2>&1 || status=$?
    if [ "$status" = 0 ]; then
        say "  ok     $what"
        return
    fi
    [ -s "$system/said" ] || echo "it said nothing" >"$system/said"
    say "  WRONG  $what (status $status of: $*)"
    tail -n 100 "$system/said" | sed 's/^/           /' >&2
    wrong+=("$what: $(tail -n 1 "$system/said" | cut -c 1-300)")
}

# await SECONDS COMMAND…: until it succeeds.
await() {
    local until=$((SECONDS + $1)) seconds=$1
    shift
    until "$@" >"$system/waiting" 2>&1; do
        [ "$SECONDS" -lt "$until" ] || { cat "$system/waiting" && echo "not so after $seconds s: $*" && return 1; }
        sleep 0.2
    done
}

unit_is() {
    [ "$(inside systemctl is-active "$1")" = "$2" ] ||
        { inside systemctl status --no-pager -l "$1"; echo "expected $1 to be $2"; return 1; }
}
answers() { inside curl -fsS --max-time 5 "$@" >/dev/null; }
# says PATTERN COMMAND…: whatever its exit status.
says() {
    inside "${@:2}" >"$system/answer" 2>&1 || true
    grep -q -- "$1" "$system/answer" || { echo "no \`$1\` in:"; tail -n 20 "$system/answer"; return 1; }
}
says_not() {
    inside "${@:2}" >"$system/answer" 2>&1 || true
    ! grep -m 5 -- "$1" "$system/answer" || { echo "expected no \`$1\` in the output above"; return 1; }
}
# holds PATTERN FILE: a file of this machine.
holds() { grep -q -- "$1" "$2" || { echo "no \`$1\` in $2:"; tail -n 20 "$2"; return 1; }; }
property() { inside systemctl show -P "$2" "$1"; }

# api METHOD PATH [CURL-ARGUMENTS…]: with the session of `login`.
api() {
    inside curl -sS --max-time 300 -b /srv/check/session -X "$1" "${base_url:-http://127.0.0.1:3000}$2" "${@:3}"
}
login() {
    inside curl -fsS -c /srv/check/session -H 'content-type: application/json' \
        -d "{\"password\":\"$1\"}" "${base_url:-http://127.0.0.1:3000}/api/auth/login"
}

# metrics PORT: what the service there tells.
metrics() {
    local token
    token=$(inside cat /etc/lakemill/secrets/SVC_METRICS_TOKEN 2>/dev/null) || true
    inside curl -fsS -H "Authorization: Bearer $token" "http://127.0.0.1:$1/metrics"
}
metrics_say() {
    metrics "$1" >"$system/answer" && grep -q -- "$2" "$system/answer" ||
        { grep -- "^${2%%[ {]*}" "$system/answer"; echo "no \`$2\` among the metrics; lines of that name are above"; return 1; }
}

# record FOLDER JOB: waits for the terminal record of a job, and prints it. FOLDER: that of the pipelines bucket.
record() {
    await 180 record_is_there "$1" "$2" >&2 || return 1
    cat "$root$1"/pipelines/*/jobs/"$2.json"
}
record_is_there() {
    compgen -G "$root$1/pipelines/*/jobs/$2.json" >/dev/null ||
        { echo "no record of $2 among the last of:"; ls -t "$root$1"/pipelines/*/jobs | head -n 10; return 1; }
}
completed() {
    [ -n "$2" ] || { echo "there is no job: it wasn't accepted"; return 1; }
    record "$1" "$2" | grep -qE '"status": ?"completed"' || { record "$1" "$2"; return 1; }
}
job_id() { sed -n 's/.*"job_id": *"\([^"]*\)".*/\1/p'; }
tables_are_right() { "$python" scripts/lib/check_flights.py "$1"; }

# Installs an older version than the package: the same files by another number.

old_version='0.0.1~check'

step_install() {
    dpkg-deb -R "$package" "$system/old"
    sed -i "s/^Version: .*/Version: $old_version/" "$system/old/DEBIAN/control"
    dpkg-deb --root-owner-group -Zgzip -z1 -b "$system/old" "$root/srv/check/old.deb" >/dev/null
    rm -rf "$system/old"
    cp "$package" "$root/srv/check/new.deb"
    check "the package is installed" inside apt-get install -y /srv/check/old.deb
    cp "$system/said" "$system/install.log"
    check "its last words say where the password is" holds 'sudo lakemill-ctl password' "$system/install.log"
    check "its last words don't tell the password" untold "$(inside lakemill-ctl password)" "$system/install.log"
    check "it asks for nothing that Debian lacks" inside apt-get check
    check "up is enabled" inside systemctl is-enabled lakemill-up
    check "worker is not enabled" says '^disabled' systemctl is-enabled lakemill-worker
    check "web is not enabled" says '^disabled' systemctl is-enabled lakemill-web
    check "up is active" await 30 unit_is lakemill-up active
    check "units are well-formed" inside sh -c 'systemd-analyze verify --man=no /usr/lib/systemd/system/lakemill-*.service 2>&1 | tee /dev/stderr | { ! grep -q lakemill; }'
    local unit
    for unit in up worker web; do
        check "lakemill-$unit: exposure is at most 1.7" exposure_is_low "lakemill-$unit"
    done
    check "secrets are root's alone" says_not . find /etc/lakemill/secrets /etc/lakemill/password -perm /077
    check "the program starts" inside lakemill --version
    check "the program of SQL finds its library" inside /usr/lib/lakemill/lakemill-sql --version
    check "there is a man page" says 'lakemill' zcat -f /usr/share/man/man1/lakemill.1
    check "bash completes" says lakemill cat /usr/share/bash-completion/completions/lakemill
}

untold() { ! grep -F -- "$1" "$2"; }

exposure_is_low() {
    inside systemd-analyze security --no-pager --threshold=17 "$1" | tail -n 1
    inside systemd-analyze security --no-pager --threshold=17 "$1" >/dev/null
}

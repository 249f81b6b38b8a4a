# Shared by the scripts: messages, and packages of the system. To be sourced by bash.

say() { printf '\033[2m%s\033[0m %s\n' "lakemill:" "$*" >&2; }

die() {
    printf '%s\n' "lakemill: error: $1" >&2
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    exit 1
}

if [ ! -t 2 ]; then
    say() { printf 'lakemill: %s\n' "$*" >&2; }
fi

# need_packages WHY PACKAGE…: installs packages of Debian or Ubuntu, without asking anything.
need_packages() {
    local why=$1 root=()
    shift
    command -v apt-get >/dev/null 2>&1 ||
        die "$why is missing, and this system has no apt-get to install it with" "install what Debian calls: $*"
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null 2>&1 || ! sudo -n true 2>/dev/null; then
            die "$why is missing, and installing it needs root" "run: sudo apt-get install $*"
        fi
        root=(sudo -n)
    fi
    say "installing $* ($why)"
    "${root[@]}" apt-get update -qq >&2 || say "apt-get update failed; trying with the package lists that are there"
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" </dev/null >&2 ||
        die "apt-get could not install: $*"
}

cache_dir() { printf '%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}/lakemill"; }

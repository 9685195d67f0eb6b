# What the scripts of this folder share. POSIX sh; sourced from the repository's root.

# Where Debian keeps dockerd, debootstrap and iptables; not every shell looks there.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH

say() {
    printf '==> %s\n' "$*"
}

# die MESSAGE [NEXT-STEP-LINE...]
die() {
    printf 'error: %s\n' "$1" >&2
    shift
    for line in "$@"; do
        printf '       %s\n' "$line" >&2
    done
    exit 1
}

is_root() {
    [ "$(id -u)" = 0 ]
}

is_debian() {
    [ -r /etc/debian_version ] && command -v apt-get >/dev/null 2>&1
}

# quiet LOG COMMAND...: its output goes to LOG, whose end is shown when the command fails.
quiet() {
    log=$1
    shift
    mkdir -p "$(dirname "$log")"
    if ! "$@" >"$log" 2>&1 </dev/null; then
        tail -n 25 "$log" >&2
        printf 'error: `%s` failed; all of its output is in %s.\n' "$*" "$log" >&2
        return 1
    fi
}

# apt_install PACKAGE...: as root on Debian; elsewhere it says what is missing and how to get it.
apt_install() {
    if ! is_debian; then
        die "this needs what Debian calls: $*." "Install that with your system's package manager, then run this again."
    fi
    if ! is_root; then
        die "this needs the packages: $*." "Run as root: apt-get install $*" "Then run this again."
    fi
    say "installing $* with apt"
    # A fresh machine has no package lists; old lists name files that the mirror dropped. So: lists first.
    quiet .cache/log/apt.log env DEBIAN_FRONTEND=noninteractive sh -c '
        apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 update &&
        apt-get -q -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@"' apt "$@" || exit 1
}

# digest_of FILE...: one word that changes with any of them, with the interpreter and with this folder's place.
digest_of() {
    { cat "$@"; "$PYTHON" --version; pwd; } | sha256sum | cut -c1-16
}

# find_python: sets PYTHON to an interpreter that the project supports. PYTHON of the environment comes first; then the
# system's own, where it can make environments: one that a version manager compiled is often slower (by 12 % in tests/).
find_python() {
    if [ -z "${PYTHON:-}" ] && /usr/bin/python3.11 -c 'import ensurepip, venv' >/dev/null 2>&1; then
        PYTHON=/usr/bin/python3.11
    fi
    for candidate in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; then
            PYTHON=$candidate
            return 0
        fi
    done
    apt_install python3
    PYTHON=python3
    "$PYTHON" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' ||
        die "GoEx needs Python 3.11, 3.12 or 3.13." "Install one, or name it: make PYTHON=/path/to/python3.12 …"
}

# make_venv FOLDER LOCK LABEL: a virtual environment that holds exactly what LOCK pins. Done once for a lock: the
# stamp is written last, so that an interrupted run begins again.
make_venv() {
    folder=$1 lock=$2 label=$3
    stamp=$folder/.done-$(digest_of "$lock")
    if [ -e "$stamp" ] && "$folder/bin/python" -c '' 2>/dev/null; then
        return 0
    fi
    if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
        apt_install python3-venv
    fi
    say "$label: Python packages of $lock into $folder"
    rm -rf "$folder"
    mkdir -p "$(dirname "$folder")"
    "$PYTHON" -m venv "$folder" || die "$PYTHON -m venv failed." "On Debian: apt-get install python3-venv"
    quiet ".cache/log/pip-$label.log" "$folder/bin/python" -m pip --disable-pip-version-check install \
        --progress-bar off --no-input --require-hashes -r "$lock" || exit 1
    : >"$stamp"
}

# demo_venv: the virtual environment that the demo runs in: the developers' where it is, else one without their tools.
demo_venv() {
    if [ -x .venv/bin/goex ]; then
        echo .venv
    else
        echo .cache/demo
    fi
}

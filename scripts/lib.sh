# shellcheck shell=sh disable=SC2034
# lib.sh: what the scripts share; they source it with the project's folder as
# the current one.

# Debian's packages: to build, to run, to test.
build_packages="cmake ninja-build gcc libc6-dev pkg-config libpq-dev
	libcurl4-openssl-dev libssl-dev libjson-c-dev libevent-dev libc-ares-dev"
run_packages="postgresql ca-certificates"
test_packages="clang libclang-rt-dev libcmocka-dev curl python3-pytest
	python3-psycopg python3-hypothesis python3-jsonschema slowhttptest
	clang-format clang-tidy cppcheck chromium chromium-driver
	python3-selenium"

say() {
	printf '== %s\n' "$*"
}

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "needs root or sudo for: $*"
	fi
}

is_installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# install_missing PACKAGE...: with apt-get, which is not asked if all are here.
install_missing() {
	missing=
	for package in "$@"; do
		is_installed "$package" || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	command -v apt-get >/dev/null ||
		die "install by hand what Debian calls:$missing"
	say "installing$missing"
	as_root apt-get -qq update
	# shellcheck disable=SC2086 # a list of words
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -y --no-install-recommends \
		-o Dpkg::Use-Pty=0 install $missing >/dev/null
}

# build PRESET [OPTION...]: configure and compile, quietly unless it fails.
build() {
	preset=$1
	say "building preset $preset"
	log=build/$preset.log
	mkdir -p build
	shift
	if ! { cmake --preset "$preset" "$@" && cmake --build --preset "$preset"; } \
		>"$log" 2>&1
	then
		tail -n 60 "$log" >&2
		die "preset $preset does not build; all of it is in $log"
	fi
}

# postgres_bin: where the newest server's programs are.
postgres_bin() {
	dir=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
	[ -x "$dir/postgres" ] || die "no PostgreSQL server is installed"
	printf '%s\n' "$dir"
}

# unprivileged: who runs what root must not, such as PostgreSQL.
unprivileged() {
	if [ "$(id -u)" -ne 0 ]; then
		id -un
	elif id -u postgres >/dev/null 2>&1; then
		echo postgres
	else
		echo nobody
	fi
}

# drop_root COMMAND...: run it as unprivileged() says.
drop_root() {
	if [ "$(id -u)" -ne 0 ]; then
		"$@"
	else
		setpriv --reuid="$(unprivileged)" \
			--regid="$(id -g "$(unprivileged)")" --clear-groups "$@"
	fi
}

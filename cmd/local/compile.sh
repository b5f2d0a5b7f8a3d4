#!/bin/sh
# Builds bin/local and compiles the handler, and says every five seconds how far it is. Without caches that takes minutes, in
# which `go run` says nothing. With caches it takes a second, and says nothing either.
export CGO_ENABLED=0 # the flags that the handler is built with: nothing is compiled twice
log=$(mktemp) || exit 1
trap 'kill "$teller" 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT TERM
tell() {
	echo "compiling: without caches this downloads 60 MB of Go modules and takes some minutes"
	after=0
	while sleep 5 >/dev/null; do
		after=$((after + 5))
		if [ -z "$all" ] && grep -qv '^go: ' "$log"; then
			all=$(${GO:-go} list -deps ./cmd/local ./cmd/handler 2>/dev/null | wc -l | tr -d ' ')
		fi
		echo "  $after s: $(grep -c '^go: downloading' "$log") modules downloaded, $(grep -cv '^go: ' "$log") of ${all:-?} packages compiled"
	done
}
(sleep 1 >/dev/null && tell) &
teller=$!
# list -export compiles as build does, and does not link.
if ! ${GO:-go} list -v -export -deps -trimpath ./cmd/local ./cmd/handler >/dev/null 2>"$log"; then
	grep '[ #]' "$log" >&2
	exit 1
fi
${GO:-go} build -trimpath -o bin/ ./cmd/local

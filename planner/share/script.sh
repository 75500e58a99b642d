#!/bin/sh
@@REMARKS@@
set -eu
dry_run='' ; held='' ; passed=0 ; names=''
usage() {
    say 'Usage: sh SCRIPT [--dry-run] [--broker NAME-IN-THE-PLAN=REAL-ID]...'
    say '  --dry-run  show every step, do nothing'
    say '  --broker   the real id (host:port) of a broker that the plan adds; asked for when it is not given'
    say 'Ends with 0 when all is done, 2 for a wrong option, 3 at a step by hand that was not confirmed, 4 when bundles'
    say 'were passed over, and with the status of a command that failed. Run it again to go on.'
}
say() { printf '%s\n' "$*"; }
run() {
    printf '+' ; printf ' %s' "$@" ; printf '\n'
    [ -n "$dry_run" ] || "$@" </dev/null
}
# once STEP COMMAND...: carry out a step that was not carried out before.
once() {
    number=$1 ; shift
    if [ -z "$dry_run" ] && [ -e "$done_file" ] && grep -qx "$number" "$done_file"; then
        printf 'Done before:' ; printf ' %s' "$@" ; printf '\n'
        return
    fi
    open=''
    "$@"
    [ -n "$dry_run$open" ] || printf '%s\n' "$number" >>"$done_file"
}
by_hand() {
    say ">> $1"
    [ $# -lt 2 ] || say "    $2"
    [ -z "$dry_run" ] || return 0
    printf 'Type yes when that is done; anything else stops here: '
    answer='' ; read -r answer || :
    case $answer in
    y | yes) ;;
    *) say 'Stopped. Run this script again to go on from here.' ; exit 3 ;;
    esac
}
# real NAME: put the real id of a broker that the plan adds into $broker.
real() {
    broker='' ; IFS_before=$IFS
    IFS='
'
    for pair in $names; do
        case $pair in "$1="*) broker=${pair#"$1="} ;; esac
    done
    IFS=$IFS_before
    if [ -n "$dry_run" ] && [ -z "$broker" ]; then broker=$1 ; fi
    while [ -z "$broker" ]; do
        printf 'Real id (host:port) of %s: ' "$1"
        read -r broker || { say 'No id was given. Run this script again.' ; exit 3 ; }
    done
}
# has NUMBER BROKER BUNDLE: whether a broker owns a bundle; each is asked once for each batch.
has() {
    if [ ! -e "$seen/$1" ]; then
        if ! @@ADMIN@@ brokers namespaces @@CLUSTER@@ --url "$2" >"$seen/$1" </dev/null; then
            say "Cannot see what $2 owns: its bundles are passed over."
            : >"$seen/$1"
        fi
    fi
    # A line begins with the bundle, bare (pulsar-admin 4.0.8) or, as JSON, in quotes.
    sed 's/^[[:space:]]*"\{0,1\}//; s/["[:space:]].*//' "$seen/$1" | grep -qxF -e "$3"
}
# cut NUMBER BROKER BUNDLE COMMAND...: split a bundle that the broker owns.
cut() {
    if [ -n "$dry_run" ] || has "$1" "$2" "$3"; then
        rm -f "$seen/$1" # it owns the parts afterwards
        shift 3
        run "$@"
    else
        pass_over "$2" "$3"
    fi
}
# move NUMBER FROM NUMBER TO BUNDLE COMMAND...: unload a bundle from one broker to another.
move() {
    if [ -n "$dry_run" ] || has "$1" "$2" "$5"; then
        shift 5
        run "$@"
        worked=1
    elif has "$3" "$4" "$5"; then
        say "There already: $5 is on $4."
    else
        pass_over "$2" "$5"
    fi
}
pass_over() {
    say "Passed over: $2 is not on $1."
    open=1 ; passed=$((passed + 1))
}
# fresh SECONDS TEXT: begin a batch; after one that did something, wait first.
worked=''
fresh() {
    if [ -n "$worked" ] && [ "$1" -gt 0 ]; then run sleep "$1" ; fi
    worked='' ; rm -f "$seen"/*
    say "$2"
}
finish() {
    status=$?
    trap - EXIT ; trap '' HUP INT TERM
    if [ -n "$held" ]; then
        say 'Shedding and splitting go back to what they were.'
        restore || say 'THAT FAILED: do it by hand, see the end of this script.'
    fi
    rm -rf "$seen"
    if [ "$status" -eq 0 ] && [ "$passed" -gt 0 ]; then
        say "Passed over: $passed. Their bundles are not where the plan supposes; capture again, and plan from there."
        status=4
    fi
    [ "$status" -ne 0 ] || [ -n "$dry_run" ] || rm -f "$done_file"
    exit "$status"
}
while [ $# -gt 0 ]; do
    case $1 in
    --dry-run) dry_run=1 ;;
    --broker)
        [ $# -gt 1 ] || { usage ; exit 2 ; }
        shift
        names="$names$1
"
        ;;
    -h | --help) usage ; exit 0 ;;
    *) usage ; exit 2 ;;
    esac
    shift
done
restore() {
    ok=0
@@RESTORED@@    return "$ok"
}
grep -qs @@DIGEST@@ "$0" || {
    say 'Save this script as a file, and run that: it reads your answers.' ; exit 2
}
done_file="$0.@@DIGEST@@.done"
seen=$(mktemp -d)
trap finish EXIT
trap 'exit 129' HUP ; trap 'exit 130' INT ; trap 'exit 143' TERM
@@BODY@@

#!/bin/sh
@@REMARKS@@
set -eu
digest=@@DIGEST@@
dry_run='' ; with_settings='' ; leave_off='' ; take_over='' ; names=''
skipped=0 ; unseen='' ; worked='' ; held='' ; kept='' ; changed='' ; turned_off=''
tab=$(printf '\t')
say() { printf '%s\n' "$*"; }
usage() {
    say 'Usage: sh SCRIPT [OPTION]...'
    say '  --dry-run             print every step and do nothing'
    say '  --broker NAME=ID      the real id (host:port) of a broker that the plan adds; asked for otherwise'
    say '  --with-settings       also make the setting changes that the script would ask about'
    say '  --leave-shedding-off  leave automatic shedding off at the end, if every step was carried out'
    say '  --take-over           go on although another script holds shedding and splits; use it when that was killed'
    say 'Exit status: 0 done, 2 wrong option, 3 stopped at a question, 4 bundles were skipped, 5 another script holds'
    say 'shedding, 6 settings could not be put back, otherwise the status of the command that failed.'
    say 'Run the script again to continue. Unless it ends with 0, all settings go back to what they were.'
}
run() {
    printf '+' ; printf ' %s' "$@" ; printf '\n'
    [ -n "$dry_run" ] || "$@" </dev/null
}
# try COMMAND...: run a command, up to three times.
try() {
    for pause in 5 5 ''; do
        if run "$@"; then return 0 ; fi
        [ -z "$pause" ] || sleep "$pause"
    done
    return 1
}
# once STEP COMMAND...: carry out a step that no earlier run has carried out.
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
# by_hand TEXT [COMMAND]: wait until a person has done a step.
by_hand() {
    say ">> $1"
    [ $# -lt 2 ] || say "    $2"
    [ -z "$dry_run" ] || return 0
    [ -z "$held" ] || say '   Shedding and automatic splits stay off while this waits.'
    while :; do
        printf 'Type yes when it is done, or stop to end here: '
        answer='' ; read -r answer || answer=stop
        case $answer in
        y | yes) return 0 ;;
        n | no | stop) say 'Stopped. Run this script again to continue.' ; exit 3 ;;
        esac
    done
}
# before_stop BROKER: say what a broker still owns before a person stops it.
before_stop() {
    [ -z "$dry_run" ] || return 0
    if @@ADMIN@@ brokers namespaces @@CLUSTER@@ --url "$1" >"$work/left" </dev/null; then
        # Its heartbeat bundles leave with it.
        bundles "$work/left" | grep -vF -e "/$1/" >"$work/still" || :
        count=$(($(wc -l <"$work/still")))
        if [ "$count" -eq 0 ]; then
            say "$1 owns no bundles any more."
        else
            say "$1 still owns $count bundles. They move wherever Pulsar places them when it stops:"
            sed -n '1,20s/^/    /p' "$work/still"
            [ "$count" -le 20 ] || say '    ...'
        fi
    else
        say "Cannot see what $1 still owns."
    fi
    say "Stop $1 before you answer: once this script ends, the load balancer moves bundles back to it within a cycle."
}
# ask_name NAME: put the real id of a broker that the plan adds into $broker.
ask_name() {
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
# bundles FILE: print the bundles in an answer, one in a line (pulsar-admin 4.0.8) or keys of JSON.
bundles() { tr '{,' '\n' <"$1" | sed -n 's/^[[:space:]]*"\{0,1\}\([^"[:space:]]*_0x[0-9a-f]*\).*$/\1/p' ; }
# owns NUMBER BROKER BUNDLE: whether a broker owns a bundle; each broker is asked once for each batch.
owns() {
    if [ ! -e "$work/owned/$1" ]; then
        if @@ADMIN@@ brokers namespaces @@CLUSTER@@ --url "$2" >"$work/answer" </dev/null; then
            bundles "$work/answer" >"$work/owned/$1"
        else
            say "Cannot see what $2 owns: its bundles are skipped."
            : >"$work/owned/$1" ; : >"$work/owned/$1.unseen"
        fi
    fi
    grep -qxF -e "$3" "$work/owned/$1"
}
# divide NUMBER BROKER BUNDLE COMMAND...: split a bundle that the broker owns.
divide() {
    if [ -n "$dry_run" ] || owns "$1" "$2" "$3"; then
        rm -f "$work/owned/$1" # it owns the parts afterwards
        shift 3
        run "$@"
    else
        skip "$1" "$2" "$3"
    fi
}
# move NUMBER FROM NUMBER TO BUNDLE COMMAND...: unload a bundle from one broker to another.
move() {
    if [ -n "$dry_run" ] || owns "$1" "$2" "$5"; then
        shift 5
        run "$@"
        worked=1
    elif owns "$3" "$4" "$5"; then
        say "Already there: $5 is on $4."
    else
        skip "$1" "$2" "$5"
    fi
}
skip() {
    if [ -e "$work/owned/$1.unseen" ]; then
        say "Skipped: $3, as $2 did not answer." ; unseen=1
    else
        say "Skipped: $3 is not on $2."
    fi
    open=1 ; skipped=$((skipped + 1))
}
# batch SECONDS TEXT: begin a batch; after one that did something, wait first.
batch() {
    if [ -n "$worked" ] && [ "$1" -gt 0 ]; then run sleep "$1" ; fi
    worked='' ; rm -f "$work/owned"/*
    say "$2"
}
# value_in FILE NAME: print the value of a setting; fail where it has none. A line is NAME, blanks, VALUE, or JSON.
value_in() {
    line="s/^[[:space:]]*$2[[:space:]]\{1,\}/=/p"
    json="s/^.*\"$2\"[[:space:]]*:[[:space:]]*\"\([^\"]*\)\".*\$/=\1/p"
    found=$(sed -n -e "$line" -e "$json" "$1" | sed -n 1p)
    case $found in
    =*) printf '%s\n' "${found#=}" ;;
    *) return 1 ;;
    esac
}
# look_at_settings: read the dynamic configuration before anything is changed.
look_at_settings() {
    [ -z "$dry_run" ] || return 0
    @@ADMIN@@ brokers get-all-dynamic-config >"$work/dynamic" </dev/null || {
        status=$? ; say 'Cannot read the dynamic configuration. Nothing was changed.' ; exit "$status"
    }
    @@ADMIN@@ brokers get-runtime-config >"$work/runtime" </dev/null || : >"$work/runtime"
    if [ -s "$before" ]; then # an earlier run was cut short; what was changed again since is not this script's any more
        cp "$before" "$work/noted"
        while IFS=$tab read -r name _ given value; do
            now=$(value_in "$work/dynamic" "$name") || now='-'
            case $now in "$given" | "$value" | *".held-by-$digest."*) ;; *) forget "$name" ;; esac
        done <"$work/noted"
    fi
    for name in @@SWITCHES@@; do
        now=$(value_in "$work/dynamic" "$name") || now=''
        case $now in
        *".held-by-$digest."*) say "An earlier run of this script was cut short and left $name off." ;;
        *.held-by-*)
            say "Another script holds $name: $now."
            if [ -z "$take_over" ]; then
                say 'Nothing was changed. Wait until that script has ended. If it was killed, run this one with'
                say '--take-over: it continues, and puts back at its end what was there before the other script.'
                exit 5
            fi
            ;;
        esac
    done
}
# noted NAME: put what a setting was before into $kind (set, unset) and $value; fail where nothing is noted.
noted() {
    line=$(grep -s "^$1$tab" "$before") || return 1
    line=${line#*"$tab"} ; kind=${line%%"$tab"*}
    line=${line#*"$tab"} ; value=${line#*"$tab"}
}
forget() {
    grep -v "^$1$tab" "$before" >"$work/before" || :
    cat "$work/before" >"$before"
}
# note NAME VALUE CAPTURED: note what a setting is, in a file that outlives this script, before it gets a value.
note() {
    [ -z "$dry_run" ] || return 0
    changed=1
    if noted "$1"; then return 0 ; fi
    now=$(value_in "$work/dynamic" "$1") || now=''
    case $now in
    '') kind='unset' ; value=$(value_in "$work/runtime" "$1") || value=$3 ;;
    *.held-by-*) value=${now##*.was-} ; kind=${value%%-*} ; value=${value#*-} ;;
    *) kind='set' ; value=$now ;;
    esac
    printf '%s\t%s\t%s\t%s\n' "$1" "$kind" "${2:--}" "$value" >>"$before"
}
is_on() { case $1 in [Tt][Rr][Uu][Ee]) return 0 ;; *) return 1 ;; esac }
# hold NAME CAPTURED: turn a switch off while this script runs; its value says who holds it, and what it was.
hold() {
    note "$1" held "$2"
    held="$held $1"
    mark=false
    if [ -z "$dry_run" ]; then
        noted "$1"
        was=false
        if is_on "$value"; then was=true ; fi
        mark="false.held-by-$digest.since-$(date -u +%Y%m%dT%H%M%SZ).was-$kind-$was"
    fi
    run @@ADMIN@@ brokers update-dynamic-config --config "$1" --value "$mark"
}
# settings_next: settings follow what was moved, so none is changed where something was skipped.
settings_next() {
    [ "$skipped" -eq 0 ] || { say 'Settings are not changed, as bundles were skipped.' ; exit 0 ; }
}
# change NAME VALUE CAPTURED COMMAND...: change a setting of all brokers; an empty value deletes its override.
change() {
    note "$1" "$2" "$3"
    kept="$kept $1"
    if [ "$1" = @@SHEDDING@@ ] && ! is_on "$2"; then turned_off=1 ; fi
    shift 3
    run "$@"
}
# offer NAME VALUE CAPTURED COMMAND...: the same, if a person wants it.
offer() {
    if [ -z "$dry_run$with_settings" ]; then
        say ">> Unless $1 is $2 (captured: $3), Pulsar undoes part of this plan."
        printf 'Type yes to set it; anything else leaves it as it is: '
        answer='' ; read -r answer || :
        case $answer in
        y | yes) ;;
        *) say "$1 stays as it is." ; return 0 ;;
        esac
    fi
    change "$@"
}
# undo NAME VALUE KIND CAPTURED: take back a value that the plan set; KIND says whether the setting had an override.
undo() {
    if [ -z "$dry_run" ]; then
        now=$(value_in "$work/dynamic" "$1") || now=''
        [ "$now" = "$2" ] || { say "$1 is not $2: it stays as it is." ; return 0 ; }
    fi
    note "$1" "$2" "$2"
    kept="$kept $1"
    [ -z "$4" ] || run @@ADMIN@@ brokers update-dynamic-config --config "$1" --value "$4"
    [ "$3" != set ] || return 0
    run sleep 5
    run @@ADMIN@@ brokers delete-dynamic-config --config "$1"
    if [ "$3" = unknown ] && [ -z "$dry_run" ]; then
        @@ADMIN@@ brokers get-runtime-config >"$work/runtime" </dev/null || : >"$work/runtime"
        now=$(value_in "$work/runtime" "$1") || now=''
        case $now in
        '' | "$4") ;;
        *) run @@ADMIN@@ brokers update-dynamic-config --config "$1" --value "$4" ;;
        esac
    fi
}
# offer_on NAME WHAT: ask whether to turn on what was off before.
offer_on() {
    [ -z "$dry_run" ] || return 0
    noted "$1" || return 0
    case " $kept " in *" $1 "*) return 0 ;; esac
    if is_on "$value"; then return 0 ; fi
    say ">> $2 was off before this script ($1=false)."
    printf 'Type on to turn it on; anything else leaves it off: '
    answer='' ; read -r answer || :
    if [ "$answer" = on ]; then
        kept="$kept $1"
        run @@ADMIN@@ brokers update-dynamic-config --config "$1" --value true
    fi
}
# put_back: give every setting that is noted its value from before, or none where it had none.
put_back() {
    failed='' ; unset=''
    # Older brokers keep the last value when an override is deleted, so each gets its value first (3.0.0 to 3.2.0).
    while IFS=$tab read -r name kind _ value; do
        [ -z "$value" ] || try @@ADMIN@@ brokers update-dynamic-config --config "$name" --value "$value" || failed=1
        [ "$kind" = set ] || unset=1
    done <"$before"
    [ -z "$unset" ] || run sleep 5
    while IFS=$tab read -r name kind _ value; do
        [ "$kind" = set ] || try @@ADMIN@@ brokers delete-dynamic-config --config "$name" || failed=1
    done <"$before"
    [ -z "$failed" ] || return 1
    rm -f "$before"
}
by_command() {
    say 'THAT FAILED. Run these commands yourself, one after the other:'
    while IFS=$tab read -r name kind _ value; do
        [ -z "$value" ] || say "@@ADMIN@@ brokers update-dynamic-config --config $name --value $value"
        [ "$kind" = set ] || say "@@ADMIN@@ brokers delete-dynamic-config --config $name"
    done <"$before"
}
finish() {
    status=$?
    trap - EXIT ; trap '' HUP INT TERM
    off=''
    if [ "$status" -eq 0 ] && [ "$skipped" -gt 0 ]; then
        if [ -n "$unseen" ]; then
            say "Skipped: $skipped. Some brokers did not answer; run this script again when they do."
        else
            say "Skipped: $skipped. Those bundles have moved since the capture; capture again, and plan from there."
        fi
        [ -z "$leave_off" ] || say 'Shedding is not left off, as bundles were skipped.'
        status=4
    fi
    if [ "$status" -eq 0 ] && [ -n "$changed" ]; then
        if [ -n "$leave_off" ] && noted @@SHEDDING@@; then
            if try @@ADMIN@@ brokers update-dynamic-config --config @@SHEDDING@@ --value false; then
                kept="$kept @@SHEDDING@@" ; turned_off=1
            fi
        fi
        for name in $kept; do forget "$name" ; done
        off=$turned_off
    fi
    if [ -n "$changed" ] && noted @@SHEDDING@@ && ! is_on "$value"; then off=1 ; fi
    [ -z "$dry_run" ] || [ -z "$held" ] || say 'Shedding and automatic splits go back to what they were.'
    if [ -n "$changed" ] && [ -s "$before" ]; then
        if [ "$status" -eq 0 ]; then
            say 'Shedding and automatic splits go back to what they were.'
        else
            say 'Settings go back to what they were.'
        fi
        put_back || { status=6 ; by_command ; }
    fi
    [ -s "$before" ] || rm -f "$before"
    [ "$status" -ne 0 ] || [ -n "$dry_run" ] || rm -f "$done_file"
    rm -rf "$work"
    [ -z "$off" ] || say @@OFF@@
    exit "$status"
}
while [ $# -gt 0 ]; do
    case $1 in
    --dry-run) dry_run=1 ;;
    --with-settings) with_settings=1 ;;
    --leave-shedding-off) leave_off=1 ;;
    --take-over) take_over=1 ;;
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
grep -qs "^digest=$digest$" "$0" || {
    say 'Save this script as a file, and run that: it reads your answers.' ; exit 2
}
done_file="$0.$digest.done" ; before="$0.$digest.before"
work=$(mktemp -d)
mkdir "$work/owned"
trap finish EXIT
trap 'exit 129' HUP ; trap 'exit 130' INT ; trap 'exit 143' TERM
@@BODY@@
